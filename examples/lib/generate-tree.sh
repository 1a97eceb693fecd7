#!/bin/sh
# generate-tree.sh DIR [FILES [FUNCTIONS]]: a package in C, the same for the same numbers on every machine.
#
# FILES sources (default 20) with FUNCTIONS functions each (default 20), fifty to a directory; `./configure`
# and `make` build one program, which prints a checksum. One line of one file holds the word ETUDE_NEEDLE, for
# grep.
set -eu

directory=${1:?generate-tree.sh: expected the directory to make}
files=${2:-20}
functions=${3:-20}
case $files$functions in
    *[!0-9]*)
        echo "generate-tree.sh: expected whole numbers, found '$files' and '$functions'" >&2
        exit 1
        ;;
esac
if [ "$files" -lt 1 ] || [ "$functions" -lt 1 ]; then
    echo 'generate-tree.sh: expected numbers from 1' >&2
    exit 1
fi
mkdir -p -- "$directory"
cd -- "$directory"
LC_ALL=C
export LC_ALL

last=$(((files - 1) / 50))
part=0
while [ "$part" -le "$last" ]; do
    mkdir -p "src/part$part"
    part=$((part + 1))
done

awk -v files="$files" -v functions="$functions" '
# The generator of Park and Miller: all its products fit a double, so that every awk has the same numbers.
function random(below) {
    seed = (seed * 16807) % 2147483647
    return seed % below
}
function source(file, name, i) {
    printf "#include \"config.h\"\n\n" >name
    for (i = 0; i < functions; i++) {
        printf "/* Step %d of unit %d: folds its argument %d times. */\n", i, file, random(90) + 10 >name
        printf "static unsigned step_%d_%d(unsigned x)\n{\n", file, i >name
        printf "    unsigned fold[%d] = {%d, %d};\n", random(12) + 4, random(999), random(999) >name
        printf "    for (unsigned i = 0; i < %d; i++)\n", random(9) + 2 >name
        printf "        fold[i %% 3] ^= (x << %d)", random(13) + 1 >name
        printf " + fold[(i + 1) %% 3] * %du;\n", random(99999) >name
        printf "    return fold[0] + fold[1] %% (fold[2] | 1u);\n}\n\n" >name
    }
    if (file == int(files / 2))
        printf "/* ETUDE_NEEDLE */\n" >name
    printf "unsigned unit_%d(unsigned x)\n{\n", file >name
    for (i = 0; i < functions; i++)
        printf "    x ^= step_%d_%d(x + %d);\n", file, i, random(999) >name
    printf "    return x;\n}\n" >name
    close(name)
}
BEGIN {
    seed = 20050410
    main = "src/main.c"
    printf "#include <stdio.h>\n\n" >main
    for (file = 0; file < files; file++) {
        source(file, sprintf("src/part%d/unit%d.c", int(file / 50), file))
        printf "unsigned unit_%d(unsigned);\n", file >main
    }
    printf "\nint main(void)\n{\n    unsigned x = 1;\n" >main
    for (file = 0; file < files; file++)
        printf "    x ^= unit_%d(x);\n", file >main
    printf "    printf(\"%%u\\n\", x);\n    return 0;\n}\n" >main
}'

cat >configure <<'END'
#!/bin/sh
# Finds the compiler and what it can do, as configure scripts have it: a small program for each question.
set -eu
: "${CC:=cc}" "${CFLAGS:=-O1}"
try() {
    printf '%s\n' "$2" >conftest.c
    if $CC $CFLAGS -o conftest conftest.c 2>/dev/null && ./conftest; then
        echo "checking for $1... yes"
        echo "#define HAVE_$1 1" >>src/config.h
    else
        echo "checking for $1... no"
    fi
    rm -f conftest conftest.c
}
: >src/config.h
try CC 'int main(void) { return 0; }'
grep -q HAVE_CC src/config.h || { echo "configure: $CC compiles nothing that runs" >&2; exit 1; }
for header in stdint unistd pthread sys/epoll sys/event; do
    try "$(echo "$header" | tr 'a-z/' 'A-Z_')_H" "#include <$header.h>
int main(void) { return 0; }"
done
try LONG_64 'int main(void) { return sizeof(long) != 8; }'
try LITTLE_ENDIAN 'int main(void) { int one = 1; return !*(char *)&one; }'
sed -e "s|@CC@|$CC|" -e "s|@CFLAGS@|$CFLAGS|" Makefile.in >Makefile
END
chmod +x configure

cat >Makefile.in <<'END'
CC = @CC@
CFLAGS = @CFLAGS@
OBJECTS = src/main.o $(patsubst %.c,%.o,$(wildcard src/part*/*.c))

generated: $(OBJECTS)
	$(CC) $(CFLAGS) -o $@ $(OBJECTS)

%.o: %.c src/config.h
	$(CC) $(CFLAGS) -Isrc -c -o $@ $<
END
