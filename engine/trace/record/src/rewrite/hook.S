# The hook, assembled once for each clock. hook.rs says how it is entered and what it may change.
#
# Names in braces are constants of layout.rs and hook.rs. Those of the frame stand before (%rsp); those of the ring
# behind %gs. Labels end with the clock, so that both hooks stand in one program.
#
#   any       the call's number is in rax alone: its entry is looked up
#   raw       the call is made as it stands, and not recorded
#   quiet     raw, but a thread that forbids itself to read the clock is never recorded again
#   stop      the launcher looks before the call and behind it, and records it itself
#   plain     one slot
#   long      several slots: all arguments, and up to two texts; path1 to map are its entries
#   wait      room is waited for, on behalf of plain and long

# ---------------------------------------------------------------------------------------------- macros

# What Entry and the launcher find a path by.
.macro place name, clock
    .long .L\name\()_\clock - etude_\clock\()_begin
.endm

# Goes there if %gs points to no ring of ours; nothing is read from it, for it may point to nothing. r11 is lost.
.macro unless_in_rings clock, otherwise
    rdgsbase %r11
    sub .Lrings_\clock(%rip), %r11
    cmp ${length}, %r11
    jae \otherwise
.endm

# The same, and for a ring that is not in use.
.macro unless_recording clock, otherwise
    unless_in_rings \clock, \otherwise
    cmpl ${magic}, %gs:0
    jne \otherwise
.endm

# A frame below the red zone, and its end.
.macro open_frame
    lea -{frame}(%rsp), %rsp
.endm

.macro close_frame
    lea {frame}(%rsp), %rsp
.endm

# The call as it came.
.macro keep_call
    mov %rcx, {back}(%rsp)
    mov %rdx, {rdx}(%rsp)
    mov %rax, {number}(%rsp)
.endm

.macro restore_call
    mov {number}(%rsp), %rax
    mov {rdx}(%rsp), %rdx
.endm

# Behind the call, in the program. rax has the result.
.macro return
    mov {back}(%rsp), %rcx
    close_frame
    jmp *%rcx
.endm

# The time to rax; rcx, rdx and r11 are lost, nothing else.
.macro stamp clock
.ifc \clock, tsc
    rdtsc
    shl $32, %rdx
    or %rdx, %rax
.else
    # CLOCK_MONOTONIC in ns, by the vdso. It is a C function: what it may change is kept, the stack is aligned. rbx
    # keeps the stack pointer, and is itself kept.
    mov %rbx, {free}(%rsp)
    mov %rsp, %rbx
    mov %rdi, {free}+8(%rsp)
    mov %rsi, {free}+16(%rsp)
    mov %r8, {free}+24(%rsp)
    mov %r9, {free}+32(%rsp)
    mov %r10, {free}+40(%rsp)
    lea {free}+48(%rsp), %rsi
    mov $1, %edi
    and $-16, %rsp
    lea etude_\clock\()_begin(%rip), %rax
    call *(%rax)
    mov %rbx, %rsp
    mov {free}(%rsp), %rbx
    mov {free}+8(%rsp), %rdi
    mov {free}+16(%rsp), %rsi
    mov {free}+24(%rsp), %r8
    mov {free}+32(%rsp), %r9
    mov {free}+40(%rsp), %r10
    imul $1000000000, {free}+48(%rsp), %rax
    add {free}+56(%rsp), %rax
.endif
.endm

# Keeps the call and when it begins, and makes it. A thread that ends within it ends at `made`.
.macro make_call clock, made
    keep_call
    mov %gs:{head}, %r11
    and ${mask}, %r11d
    prefetchw %gs:{data}(%r11)          # the launcher has read this line last
    stamp \clock
    mov %rax, {begun}(%rsp)
    restore_call
    syscall
\made:
    mov %rax, {result}(%rsp)
    stamp \clock
.endm

# Goes there if the ring has no room. The register is lost.
.macro if_full register, full
    mov %gs:{head}, %\register
    sub %gs:{tail}, %\register
    cmp ${full}, %\register
    jae \full
.endm

# Waits for room, and goes on there; or at the other place, where none comes. rax and rdx are lost.
.macro wait_for_room clock, room, none
    lea \room(%rip), %rcx
    lea \none(%rip), %r11
    jmp .Lwait_\clock
.endm

# r11: where the byte of the ring with the number in rcx is, from `data` on.
.macro place_in_ring
    mov %rcx, %r11
    and ${mask}, %r11d
.endm

# An entry of `long` with the addresses of two texts; zero is none.
.macro long_entry clock, first, second
    open_frame
    movq \first, {text}(%rsp)
    movq \second, {text_2}(%rsp)
    jmp .Llong_\clock
.endm

# Bytes of the text at rdx with its final zero, to a register that is zero: at most `most`. rax and rdx are lost.
.macro measure_text register
    test %rdx, %rdx
    jz .Lmeasured_\@
.Lmeasure_\@:
    movzbl (%rdx), %eax
    inc %rdx
    inc %\register
    test %eax, %eax
    jz .Lmeasured_\@
    cmp ${most}, %\register
    jb .Lmeasure_\@
.Lmeasured_\@:
.endm

# Copies from rdx on to the ring's byte rcx, eax bytes; rcx is behind them then.
.macro copy_text
    add %rdx, %rax
    mov %rax, {end}(%rsp)
.Lcopy_\@:
    cmp {end}(%rsp), %rdx
    je .Lcopied_\@
    movzbl (%rdx), %eax
    place_in_ring
    mov %al, %gs:{data}(%r11)
    inc %rcx
    inc %rdx
    jmp .Lcopy_\@
.Lcopied_\@:
.endm

# ------------------------------------------------------------------------------------------------ hook

.macro hook clock
.section .rodata.etude_hook, "a", @progbits
.balign 64
.globl etude_\clock\()_begin
etude_\clock\()_begin:
    .quad 0                             # the vdso's clock_gettime, filled in for each image
.Lrings_\clock:
    .quad 0                             # where the rings are, too

# In the order of Entry, then that of Code's functions.
.Lplaces_\clock:
    .irp name, raw, plain, wide, map, path1, path2, path12, path24, path13, quiet, pair1, pair4, stop, range3
    place \name, \clock
    .endr
    .irp name, address2, offset3, offset24
    place \name, \clock
    .endr
    .irp name, any, trap, remote, made, long_made, reserved, written, long_reserved, long_written, stops, stopped
    place \name, \clock
    .endr
.Lkinds_\clock:
    .fill {numbers}, 1, 0               # which entry each number takes, where only rax knows it

# --- any: the number is in rax alone
.balign 16
.Lany_\clock:
    cmp ${numbers} - 1, %rax
    ja .Lraw_\clock
    lea .Lkinds_\clock(%rip), %r11
    movzbl (%r11,%rax), %r11d
    test %r11d, %r11d
    jz .Lraw_\clock
    open_frame
    mov %rdx, {rdx}(%rsp)
    lea .Lplaces_\clock(%rip), %rdx
    movslq (%rdx,%r11,4), %r11
    lea etude_\clock\()_begin(%rip), %rdx
    add %rdx, %r11
    mov {rdx}(%rsp), %rdx
    close_frame
    jmp *%r11

# --- remote: calls that the launcher makes in this thread
.Lremote_\clock:
    syscall
    int3

# --- raw: rcx is behind the program's own `syscall`
.Lraw_\clock:
    sub $2, %rcx
    jmp *%rcx

# --- quiet: prctl 157: PR_SET_SECCOMP 22 (strict 1, filter 2), PR_SET_TSC 26 (fault 2); seccomp 317: strict 0, filter 1
.Lquiet_\clock:
    cmp $157, %eax
    jne .Lquiet_seccomp_\clock
    cmp $26, %edi
    je .Lquiet_tsc_\clock
    cmp $22, %edi
    jne .Lraw_\clock
    cmp $1, %esi
    je .Lquiet_never_\clock
    cmp $2, %esi
    jne .Lraw_\clock
    jmp .Lquiet_filter_\clock
.Lquiet_tsc_\clock:
    cmp $2, %esi
    jne .Lraw_\clock
    jmp .Lquiet_never_\clock
.Lquiet_seccomp_\clock:
    test %edi, %edi
    jz .Lquiet_never_\clock
    cmp $1, %edi
    jne .Lraw_\clock
# A filter may kill for calls that are not the program's: its thread makes none any more, and waits awake.
.Lquiet_filter_\clock:
    unless_in_rings \clock, .Lraw_\clock
    orl ${spins}, %gs:{mode}
    jmp .Lraw_\clock
# No clock can be read: the thread has no ring any more.
.Lquiet_never_\clock:
    unless_in_rings \clock, .Lraw_\clock
    movl $0, %gs:0
    jmp .Lraw_\clock

# --- stop: the launcher looks behind the call, and but for io_uring before it, if it is there: else the trap would be a
# signal that kills. Its frame holds times where others hold texts (frame.rs).
.balign 16
.Lstop_\clock:
    unless_recording \clock, .Lraw_\clock
    testl ${died}, %gs:{owner}
    jnz .Lraw_\clock
    open_frame
    keep_call
    stamp \clock
    mov %rax, {look_came}(%rsp)
    mov %rax, {look_begun}(%rsp)
    restore_call
    cmp ${uring}, %eax
    jae .Lstop_call_\clock
.Lstops_\clock:
    int3
    stamp \clock
    mov %rax, {look_begun}(%rsp)
    restore_call
.Lstop_call_\clock:
    syscall
    mov %rax, {look_result}(%rsp)
    stamp \clock
    mov %rax, {look_ended}(%rsp)
    mov {look_result}(%rsp), %rax
    mov {rdx}(%rsp), %rdx
    testl ${died}, %gs:{owner}
    jnz .Lstop_leave_\clock
.Lstopped_\clock:
    int3
.Lstop_leave_\clock:
    stamp \clock
    mov %rax, %gs:{left}
    mov {look_result}(%rsp), %rax
    mov {rdx}(%rsp), %rdx
    return

# --- plain: one slot
.balign 16
.Lplain_\clock:
    unless_recording \clock, .Lraw_\clock
    open_frame
    make_call \clock, .Lmade_\clock
    mov %rax, %rdx                      # when it ended, until that is written
    if_full rcx, .Lplain_full_\clock
.Lplain_room_\clock:
    mov ${slot}, %ecx
    xadd %rcx, %gs:{head}               # one instruction: a signal sees it done or not
# From here to `written` a signal makes the launcher take the record (in_flight_record.rs).
.Lreserved_\clock:
    place_in_ring
    mov %rdx, %gs:{data}+16(%r11)
    mov {begun}(%rsp), %rax
    mov %rax, %gs:{data}+8(%r11)
    mov {rdx}(%rsp), %rax
    mov %rax, %gs:{data}+48(%r11)
    mov {result}(%rsp), %rax
    mov %rax, %gs:{data}+24(%r11)
    mov %rdi, %gs:{data}+32(%r11)
    mov %rsi, %gs:{data}+40(%r11)
    mov %r10, %gs:{data}+56(%r11)
    shl $10, %rcx
    or {number}(%rsp), %rcx
    mov %rcx, %gs:{data}(%r11)          # last: now it is there
.Lwritten_\clock:
.Lplain_return_\clock:
    mov {rdx}(%rsp), %rdx
    return
.Lplain_full_\clock:
    mov %rdx, {ended}(%rsp)
    wait_for_room \clock, .Lplain_waited_\clock, .Lplain_dropped_\clock
.Lplain_waited_\clock:
    mov {ended}(%rsp), %rdx
    jmp .Lplain_room_\clock
.Lplain_dropped_\clock:
    incq %gs:{dropped}
    mov {result}(%rsp), %rax
    jmp .Lplain_return_\clock

# --- wait: goes on at rcx where there is room, at r11 where none comes
.balign 16
.Lwait_\clock:
    mov %rdi, {kept}(%rsp)
    mov %rsi, {kept}+8(%rsp)
    mov %r10, {kept}+16(%rsp)
    mov %rcx, {kept}+40(%rsp)
    mov %r11, {kept}+48(%rsp)
    mov $1024, %esi                     # looks before it sleeps
.Lwait_look_\clock:
    testl ${drops}, %gs:{mode}
    jnz .Lwait_none_\clock
    testl ${died}, %gs:{owner}
    jnz .Lwait_none_\clock
    mov %gs:{tail}, %rdx
    mov %gs:{head}, %rcx
    sub %rdx, %rcx
    cmp ${full}, %rcx
    jb .Lwait_room_\clock
    pause
    testl ${spins}, %gs:{mode}
    jnz .Lwait_look_\clock
    dec %esi
    jns .Lwait_look_\clock
    cmp $-1, %esi
    jne .Lwait_sleep_\clock
    movl $1, %gs:{waits}                # and looks once more, since the consumer may have missed that
    mfence
    jmp .Lwait_look_\clock
.Lwait_sleep_\clock:
    rdgsbase %rdi
    add ${tail}, %rdi
    xor %esi, %esi                      # FUTEX_WAIT, 10 ms: of the recorder's end nobody tells
    movq $0, {kept}+24(%rsp)
    movq $10000000, {kept}+32(%rsp)
    lea {kept}+24(%rsp), %r10
    mov $202, %eax
    syscall
    xor %esi, %esi
    jmp .Lwait_look_\clock
.Lwait_room_\clock:
    mov {kept}+40(%rsp), %rcx
    jmp .Lwait_over_\clock
.Lwait_none_\clock:
    mov {kept}+48(%rsp), %rcx
.Lwait_over_\clock:
    mov {kept}(%rsp), %rdi
    mov {kept}+8(%rsp), %rsi
    mov {kept}+16(%rsp), %r10
    jmp *%rcx

# --- long's entries. Where the second text is no address but a small number, it says what the first, or rdx, points to.
.balign 16
.Lpath1_\clock:
    long_entry \clock, %rdi, $0
.Lpath2_\clock:
    long_entry \clock, %rsi, $0
.Lpath12_\clock:
    long_entry \clock, %rdi, %rsi
.Lpath24_\clock:
    long_entry \clock, %rsi, %r10
.Lpath13_\clock:
    long_entry \clock, %rdi, %rdx
.Lpair1_\clock:
    long_entry \clock, %rdi, ${pair}
.Lpair4_\clock:
    long_entry \clock, %r10, ${pair}
.Lrange3_\clock:                        # F_SETLK 6, F_SETLKW 7, F_OFD_SETLK 37, F_OFD_SETLKW 38
    lea -6(%rsi), %r11d
    cmp $1, %r11d
    jbe .Lrange_\clock
    lea -37(%rsi), %r11d
    cmp $1, %r11d
    ja .Lplain_\clock
.Lrange_\clock:
    long_entry \clock, %rdx, ${range}
.Laddress2_\clock:
    long_entry \clock, %rsi, ${address}
.Loffset3_\clock:
    open_frame
    movq ${offset}, {text_2}(%rsp)
    jmp .Llong_\clock
.Loffset24_\clock:
    open_frame
    movq ${offsets}, {text_2}(%rsp)
    jmp .Llong_\clock
.Lwide_\clock:
.Lmap_\clock:
    open_frame
    movq $0, {text}(%rsp)
    movq $0, {text_2}(%rsp)

# --- long: several slots
.Llong_\clock:
    unless_recording \clock, .Llong_raw_\clock
    make_call \clock, .Llong_made_\clock
    mov %rax, {ended}(%rsp)
    movl $0, {unread}(%rsp)
    cmpq $-14, {result}(%rsp)           # EFAULT: the texts cannot be read
    je .Lno_texts_\clock
    cmpq $-38, {result}(%rsp)           # ENOSYS: nobody has read them
    jne .Ltexts_\clock
.Lno_texts_\clock:
    movq $0, {text}(%rsp)
    movq $0, {text_2}(%rsp)
.Ltexts_\clock:
    cmpq ${range}, {text_2}(%rsp)
    jne .Lnot_range_\clock

# A range of a file that is locked. ecx is the first text's length from here on, r11d the second's.
    movq $0, {text_2}(%rsp)
    mov ${range_bytes} + 1, %ecx        # with a final zero that nobody reads
    cmpq $0, {result}(%rsp)
    je .Lsecond_\clock
    cmpq $-11, {result}(%rsp)           # EAGAIN
    je .Lsecond_\clock
    cmpq $-35, {result}(%rsp)           # EDEADLK; after all others the range may not be there
    je .Lsecond_\clock
    movq $0, {text}(%rsp)
    xor %ecx, %ecx
    jmp .Lsecond_\clock

# A socket's address: its length is rdx, and it is kept if it is of a Unix socket.
.Lnot_range_\clock:
    cmpq ${address}, {text_2}(%rsp)
    jne .Lnot_address_\clock
    movq $0, {text_2}(%rsp)
    xor %ecx, %ecx
    mov {text}(%rsp), %rdx
    movq $0, {text}(%rsp)
    cmpq $0, {result}(%rsp)             # after an error the address may not be there
    jne .Lsecond_\clock
    mov {rdx}(%rsp), %eax
    lea -{shortest}(%rax), %r11d
    cmp ${longest} - {shortest}, %r11d
    ja .Lsecond_\clock
    cmpw ${unix}, (%rdx)
    jne .Lsecond_\clock
    mov %rdx, {text}(%rsp)
    lea 1(%rax), %ecx                   # without the final zero, which is not there
    movl $1, {unread}(%rsp)
    jmp .Lsecond_\clock

# Offsets: where they are is in rdx (and none in rax), or in rsi and r10. Each is copied into the frame.
.Lnot_address_\clock:
    mov {rdx}(%rsp), %rdx
    xor %eax, %eax
    cmpq ${offset}, {text_2}(%rsp)
    je .Loffsets_\clock
    mov %rsi, %rdx
    mov %r10, %rax
    cmpq ${offsets}, {text_2}(%rsp)
    jne .Lnot_offsets_\clock
.Loffsets_\clock:
    movq $0, {text}(%rsp)
    movq $0, {text_2}(%rsp)
    xor %ecx, %ecx
    cmpq $0, {result}(%rsp)             # after an error the offsets may not be there
    jl .Lsecond_\clock
    xor %r11d, %r11d
    test %rax, %rax
    jz .Loffsets_first_\clock
    mov (%rax), %rax
    mov %rax, {copy_2}(%rsp)
    lea {copy_2}(%rsp), %rax
    mov %rax, {text_2}(%rsp)
    mov $9, %r11d                       # with a final zero that nobody reads
.Loffsets_first_\clock:
    test %rdx, %rdx
    jz .Loffsets_over_\clock
    mov (%rdx), %rdx
    mov %rdx, {copy}(%rsp)
    lea {copy}(%rsp), %rdx
    mov %rdx, {text}(%rsp)
    mov $9, %ecx
.Loffsets_over_\clock:
    mov %ecx, {bytes}(%rsp)
    jmp .Lmeasured_\clock

# A pair of descriptors, copied into the frame.
.Lnot_offsets_\clock:
    cmpq ${pair}, {text_2}(%rsp)
    jne .Lpaths_\clock
    movq $0, {text_2}(%rsp)
    cmpq $0, {result}(%rsp)
    mov $0, %ecx
    mov {text}(%rsp), %rdx
    mov %rcx, {text}(%rsp)
    jne .Lsecond_\clock                 # nothing was put there
    mov (%rdx), %rdx
    mov %rdx, {copy}(%rsp)
    movb $0, {copy_2}(%rsp)
    lea {copy}(%rsp), %rdx
    mov %rdx, {text}(%rsp)
    mov $9, %ecx
    jmp .Lsecond_\clock

# Paths, as they end with a zero.
.Lpaths_\clock:
    xor %ecx, %ecx
    mov {text}(%rsp), %rdx
    measure_text ecx
.Lsecond_\clock:
    mov %ecx, {bytes}(%rsp)
    xor %r11d, %r11d
    mov {text_2}(%rsp), %rdx
    measure_text r11d
.Lmeasured_\clock:
    mov %r11d, {bytes_2}(%rsp)
    lea 24+{slot}-1(%rcx,%r11), %ecx    # r8, r9, both lengths, texts
    shr $6, %ecx
    mov %ecx, {further}(%rsp)           # slots beside the first
    if_full rdx, .Llong_full_\clock
.Llong_room_\clock:
    mov {further}(%rsp), %ecx
    inc %ecx
    shl $6, %ecx
    xadd %rcx, %gs:{head}
# As in plain.
.Llong_reserved_\clock:
    mov %rcx, {word}(%rsp)
    place_in_ring
    mov {begun}(%rsp), %rax
    mov %rax, %gs:{data}+8(%r11)
    mov {ended}(%rsp), %rax
    mov %rax, %gs:{data}+16(%r11)
    mov {result}(%rsp), %rax
    mov %rax, %gs:{data}+24(%r11)
    mov %rdi, %gs:{data}+32(%r11)
    mov %rsi, %gs:{data}+40(%r11)
    mov {rdx}(%rsp), %rax
    mov %rax, %gs:{data}+48(%r11)
    mov %r10, %gs:{data}+56(%r11)
    add ${slot}, %rcx
    place_in_ring
    mov %r8, %gs:{data}(%r11)
    mov %r9, %gs:{data}+8(%r11)
    mov {bytes}(%rsp), %rax
    mov %rax, %gs:{data}+16(%r11)
    add $24, %rcx
    mov {text}(%rsp), %rdx
    mov {bytes}(%rsp), %eax
    sub {unread}(%rsp), %eax
    copy_text
    mov {text_2}(%rsp), %rdx
    mov {bytes_2}(%rsp), %eax
    copy_text
    mov {word}(%rsp), %rcx
    place_in_ring
    shl $10, %rcx
    mov {further}(%rsp), %eax
    shl $10, %eax
    or %rax, %rcx
    or {number}(%rsp), %rcx
    mov %rcx, %gs:{data}(%r11)
.Llong_written_\clock:

# Was code mapped? mmap 9, mprotect 10, pkey_mprotect 329; mremap never makes code.
.Llong_return_\clock:
    restore_call
    test $4, %dl
    jz .Lno_code_\clock
    cmp $9, %eax
    je .Lcode_\clock
    cmp $10, %eax
    je .Lcode_\clock
    cmp $329, %eax
    jne .Lno_code_\clock
.Lcode_\clock:
    cmpq $-4096, {result}(%rsp)
    ja .Lno_code_\clock
    testl ${died}, %gs:{owner}          # nobody would hear of it, and the trap be a signal that kills
    jnz .Lno_code_\clock
.Ltrap_\clock:
    int3
.Lno_code_\clock:
    mov {result}(%rsp), %rax
    return
.Llong_full_\clock:
    wait_for_room \clock, .Llong_room_\clock, .Llong_dropped_\clock
.Llong_dropped_\clock:
    incq %gs:{dropped}
    jmp .Llong_return_\clock
.Llong_raw_\clock:
    close_frame
    sub $2, %rcx
    jmp *%rcx
.globl etude_\clock\()_end
etude_\clock\()_end:
.endm

hook tsc
hook vdso
.text
