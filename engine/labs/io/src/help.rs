//! What `--help` and `--version` print.

pub const VERSION: &str = concat!("etude-io ", env!("CARGO_PKG_VERSION"), "\n");

/// `PROGRAM` stands for what was called.
pub const HELP: &str = "\
usage: PROGRAM create|read|write|describe [options] PATH
       PROGRAM -c|-r|-w [options] PATH

Reads or writes a file with one buffer size and prints the rate of that alone, in KBytes/sec (1024 bytes).

  create    write the file and print the configuration; nothing is measured
  read      measure reading it
  write     measure writing over it
  describe  print the machine, the system and what would be measured

  -b SIZE             bytes a call, the buffer's size [16K]; K, M, G, T are powers of 1024
  -t SIZE             bytes in all [16M], a multiple of -b
  --tail              they need not be a multiple: the last transfer is shorter
  -n N                iterations, a sample each, with a buffer mapped afresh [1]
  -B, --bare          no preparation: no fsync, no sync, no second of rest before the first iteration
  -d                  O_DIRECT
  -s                  fsync (mmap: msync) at the end of the timed part
  -q                  print nothing, whatever else is asked for
  -v                  print the configuration and the time, too
  -j, --json          print all as one JSON object
  -g                  resource usage of each iteration
  --touch             write to every page of the buffer before the clock is read
  --huge on|off       huge pages for the buffer, or none [as the machine does]
  --cpu N             run on this CPU alone
  --cool none|warm|drop
                      before each iteration: read the file once, or drop it from the page cache [none]
  --method METHOD     read, pread, mmap or io_uring; to write: write, pwrite, mmap or io_uring
  --order sequential|random
                      random: every block once, not with read and write [sequential]
  --seed N            of the random order [1]
  -P, --counters SET  count perf events: l1d, l1i, l2, mem or tlb, beside instructions and cycles

Exit status, as in sysexits(3): 0 done; 64 usage; 66 no such file, or too short; 71 the system refuses;
73 the file cannot be created; 74 a transfer failed; 77 not permitted.
";
