#!/usr/bin/perl
# metadata.pl DIRECTORY FILES: makes, looks at and removes so many empty files in a directory of this worker's own.
use strict;
use warnings;
use Time::HiRes 'time';

my ( $directory, $files ) = @ARGV;
my $own = "$directory/worker-$ENV{APTHREAD}";
mkdir $own or die "$own: $!\n";
my $begin = time;
for ( 1 .. $files ) { open my $file, '>', "$own/$_" or die "$own/$_: $!\n" }
for ( 1 .. $files ) { stat "$own/$_" or die "$own/$_: $!\n" }
for ( 1 .. $files ) { unlink "$own/$_" or die "$own/$_: $!\n" }
printf "operations/s: %.6f\n", 3 * $files / ( time - $begin );
rmdir $own or die "$own: $!\n";
