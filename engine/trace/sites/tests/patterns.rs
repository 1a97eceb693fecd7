//! Each pattern, and each reason to leave a call alone, on bytes written by hand.

mod common;

use common::{BASE, HERE, bytes, code};
use etude_sites::{Form, Left, Relative, Scan, Site, Why, scan};

fn look(text: &str) -> Scan {
    scan(&code(text), BASE)
}

fn site(text: &str) -> Site {
    let found = look(text);
    assert!(found.left.is_empty() && found.sites.len() == 1, "{text}: {found:?}");
    found.sites[0].clone()
}

fn left(text: &str) -> Left {
    let found = look(text);
    assert!(found.sites.is_empty() && found.left.len() == 1, "{text}: {found:?}");
    found.left[0].clone()
}

const CHECK: &str = "48 3d 01 f0 ff ff"; // cmp $-4095,%rax

#[test]
fn a_number_moved_directly_before_is_replaced_and_the_call_stays() {
    // mov $1,%eax; syscall
    let found = site("b8 01000000 0f05");
    assert_eq!((found.form, found.at, found.call, found.number), (Form::Number, HERE, HERE + 5, Some(1)));
    assert_eq!((found.bytes, found.before.bytes), (bytes("b801000000"), bytes("b801000000")));
    assert_eq!((found.after.bytes, found.back), (vec![], Some(HERE + 7)));
    // mov $1,%rax; syscall
    let found = site("48 c7 c0 01000000 0f05");
    assert_eq!(
        (found.form, found.bytes.len(), found.call, found.number),
        (Form::Number, 7, HERE + 7, Some(1))
    );
}

#[test]
fn a_check_for_errors_directly_behind_is_replaced_with_the_call() {
    // xor %eax,%eax; syscall; cmp; ja
    let found = site(&format!("31 c0 0f05 {CHECK} 77 02"));
    assert_eq!((found.form, found.at, found.call, found.number), (Form::Check, HERE + 2, HERE + 2, Some(0)));
    assert_eq!((found.after.bytes, found.back), (bytes(CHECK), Some(HERE + 10)));
    // cmp $-4096,%eax is five bytes
    let found = site("31 c0 0f05 3d 00f0ffff 77 02");
    assert_eq!((found.form, found.bytes.len(), found.back), (Form::Check, 7, Some(HERE + 9)));
    // cmp with something else is a use of the result like any other
    assert_eq!(site("31 c0 0f05 3d 05000000 77 02").form, Form::Result);
}

#[test]
fn a_use_of_the_result_directly_behind_is_replaced_with_the_call() {
    // syscall; mov %rax,%rdi
    let found = site("0f05 48 89 c7");
    assert_eq!((found.form, found.at, found.number, found.back), (Form::Result, HERE, None, Some(HERE + 5)));
    // syscall; mov %eax,%edx; mov $5,%ecx: as many instructions as it takes
    let found = site("0f05 89 c2 b9 05000000");
    assert_eq!((found.after.bytes, found.back), (bytes("89c2 b905000000"), Some(HERE + 9)));
}

#[test]
fn a_condition_and_a_word_beside_the_code_are_moved_with_where_they_lead() {
    // syscall; test %eax,%eax; js +16
    let found = site("0f05 85 c0 78 10");
    assert_eq!(found.after.bytes, bytes("85c0 0f88 00000000"));
    assert_eq!(found.after.relative, [Relative { field: 4, target: HERE + 6 + 16 }]);
    assert_eq!(found.after.at(HERE + 100), Some(bytes("85c0 0f88 aaffffff")));
    assert_eq!(found.after.at(HERE + (5 << 30)), None, "too far away");
    // syscall; neg %eax; mov 0x100(%rip),%rdx
    let found = site("0f05 f7 d8 48 8b 15 00010000");
    assert_eq!(found.after.relative, [Relative { field: 5, target: HERE + 11 + 0x100 }]);
}

#[test]
fn what_follows_a_jump_is_where_it_leads() {
    // xor %edi,%edi; mov $7,%eax before a call, so that nothing before can move; syscall; jmp +0x20
    let found = site("e8 00010000 0f05 e9 20000000");
    assert_eq!((found.form, found.back), (Form::After, Some(HERE + 12 + 0x20)));
    assert!(found.after.bytes.is_empty());
}

#[test]
fn a_return_takes_the_padding_behind_it_but_no_beginning_of_a_function() {
    // call; syscall; ret; int3...
    let found = site("e8 00010000 0f05 c3 cccc");
    assert_eq!((found.form, found.bytes.len(), found.back), (Form::After, 5, None));
    assert_eq!(found.after.bytes, [0xc3]);
    // the padding reaches a multiple of 16
    assert_eq!(left("90909090 909090 e8 00010000 0f05 c3 909090").why, Why::Pattern);
    // no padding, but a push
    assert_eq!(left("e8 00010000 0f05 c3 55 5d").why, Why::Pattern);
}

#[test]
fn instructions_before_are_moved_where_nothing_behind_can_be() {
    // xor %edi,%edi; xor %eax,%eax; syscall; mov (%rbx),%ecx
    let found = site("31 ff 31 c0 0f05 8b 0b");
    assert_eq!((found.form, found.at, found.call), (Form::Before, HERE, HERE + 4));
    assert_eq!((found.bytes, found.number), (bytes("31ff 31c0 0f05"), Some(0)));
    assert_eq!((found.before.bytes, found.back), (bytes("31ff 31c0"), Some(HERE + 6)));
    // mov $0,%edi; syscall: the call itself can stay
    let found = site("bf 00000000 0f05 8b 0b");
    assert_eq!((found.form, found.bytes.len(), found.back), (Form::Before, 5, Some(HERE + 7)));
}

#[test]
fn what_is_entered_in_between_stays() {
    let check = format!("31 c0 0f05 {CHECK}");
    // a short jump behind leads to the cmp
    assert_eq!(left(&format!("{check} eb f8")).why, Why::Entered);
    assert_eq!(site(&format!("{check} eb f6")).form, Form::Check, "and one to the call does no harm");
    // so do jcc, jmp and call of 32 bits, wherever they are, and a lea
    for branch in ["0f 84 f4ffffff", "e9 f5ffffff", "e8 f5ffffff", "48 8d 05 f3ffffff"] {
        assert_eq!(left(&format!("{check} {branch}")).why, Why::Entered, "{branch}");
    }
    let mut far = code(&check);
    far.resize(200_000, 0xcc);
    let distance = (HERE + 4).wrapping_sub(BASE + 150_000) as u32;
    far[149_995] = 0xe9;
    far[149_996..150_000].copy_from_slice(&distance.to_le_bytes());
    assert_eq!(scan(&far, BASE).left[0].why, Why::Entered);
    far[149_994] = 0x0f; // je
    far[149_995] = 0x84;
    assert_eq!(scan(&far, BASE).left[0].why, Why::Entered);
    // a jump to the call itself would pass by a jump in place of the number
    assert_eq!(left("b8 01000000 0f05 8b 0b eb fa").why, Why::Entered);
    assert_eq!(look("b8 01000000 0f05 8b 0b eb fa").left[0].number, None);
    // unless there is room behind: then the call is replaced itself
    assert_eq!(site(&format!("b8 01000000 0f05 {CHECK} eb f6")).form, Form::Check);
}

#[test]
fn calls_that_return_twice_or_elsewhere_stay() {
    for number in [15u32, 56, 57, 58, 59, 60, 231, 322, 435] {
        let moved: String = number.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let found = left(&format!("b8 {moved} 0f05 {CHECK}"));
        assert_eq!((found.why, found.number), (Why::Never, Some(number)));
    }
    // pop %r12; syscall; push %r12: a vfork whose number nobody knows
    assert_eq!(left(&format!("41 5c 0f05 41 54 {CHECK}")).why, Why::Never);
    // munmap; xor %edi,%edi; mov $60,%al; syscall: a thread gives back its own stack
    let found = look("b8 0b000000 0f05 48 31 ff b0 3c 0f05");
    assert_eq!((found.sites, found.left[0].why), (vec![], Why::Never));
    assert_eq!(site(&format!("b8 0b000000 0f05 {CHECK}")).number, Some(11));
}

#[test]
fn flags_that_are_needed_behind_are_told() {
    // cmp $0,%rbx; mov $0x107,%eax; syscall; je
    let found = left("48 83 fb 00 b8 07010000 0f05 74 02");
    assert_eq!((found.why, found.number), (Why::Flags, Some(263)));
    assert_eq!(found.site.map(|site| (site.form, site.at)), Some((Form::Number, HERE + 4)));
    // a test in between sets them anew
    assert_eq!(site("48 83 fb 00 b8 07010000 0f05 85 c0 74 02").form, Form::Number);
    // also behind a jump: jmp +2; ...; je
    assert_eq!(left("b8 07010000 0f05 eb 02 9090 74 02").why, Why::Flags);
}

#[test]
fn the_bytes_of_a_call_within_another_instruction_are_none() {
    for text in ["b8 0f050000", "48 8d 05 0f050000", "e8 0f050000", "c7 44 24 08 0f050f05"] {
        assert_eq!(look(text), Scan::default(), "{text}");
    }
}

#[test]
fn a_call_that_may_be_data_stays() {
    let call = format!("b8 01000000 0f05 {CHECK}");
    // what no program holds (06: not of 64 bits; 6c: input from a port; 0000: zeros)
    for odd in ["06", "6c", "0000"] {
        assert_eq!(left(&format!("{odd} {call}")).why, Why::Unclear, "{odd}");
    }
    // two bytes each for ever: wherever one begins, one never comes in step
    let mut zeros = vec![0; 20_000];
    zeros.extend(bytes(&call));
    zeros.extend(bytes("c3 cccccccc"));
    assert!(scan(&zeros, BASE).sites.is_empty());
}

#[test]
fn beside_a_jump_by_table_only_what_uses_the_result_is_replaced() {
    let table = "ff e0"; // jmp *%rax
    assert_eq!(left(&format!("{table} 31 ff 31 c0 0f05 8b 0b")).why, Why::Unclear);
    assert_eq!(site(&format!("{table} 31 ff 31 c0 0f05 48 89 c7")).form, Form::Result);
    assert_eq!(left(&format!("{table} e8 00010000 0f05 e9 20000000")).why, Why::Unclear);
    // that of a PLT is none: jmp *0x100(%rip)
    assert_eq!(site("ff 25 00010000 31 ff 31 c0 0f05 8b 0b").form, Form::Before);
}

#[test]
fn what_may_fault_or_depends_on_its_place_is_not_moved() {
    for behind in [
        "8b 0b",                   // mov (%rbx),%ecx
        "ff d0",                   // call *%rax
        "e2 fe",                   // loop
        "c7 05 00000000 01000000", // movl $1,0(%rip)
        "f0 ff 04 24",             // lock incl (%rsp)
        "0f 28 c1",                // movaps
        "65 8b 04 25 00000000",    // mov %gs:0,%eax
    ] {
        assert_eq!(left(&format!("e8 00010000 0f05 {behind} 85 c0")).why, Why::Pattern, "{behind}");
    }
}

#[test]
fn two_calls_do_not_share_a_byte() {
    // syscall; mov %eax,%edi; mov $3,%eax; syscall; mov (%rbx),%ecx: the first takes what the second could
    let found = look("e8 00010000 0f05 89 c7 b8 03000000 0f05 8b 0b");
    assert_eq!(found.sites.len(), 1);
    assert_eq!((found.sites[0].form, found.left[0].why), (Form::Result, Why::Pattern));
}

#[test]
fn the_number_is_known_where_nothing_comes_between() {
    let number = |before: &str| site(&format!("{before} 0f05 {CHECK}")).number;
    assert_eq!(number("31 c0"), Some(0)); // xor %eax,%eax
    assert_eq!(number("b8 05000000 89 fb"), Some(5)); // a move of others between
    assert_eq!(number("bb 06000000 89 d8"), Some(6)); // mov $6,%ebx; mov %ebx,%eax
    assert_eq!(number("6a 07 58"), Some(7)); // push $7; pop %rax
    assert_eq!(number("b8 05000000 74 40"), Some(5)); // je that is not taken
    assert_eq!(number("b8 05000000 e8 00010000"), None); // a call between
    assert_eq!(number("b8 05000000 0fa2"), None); // cpuid writes eax
    assert_eq!(number("b8 05000000 b0 01"), None); // mov $1,%al
    assert_eq!(number("b8 05000000 ff c0"), None); // inc %eax
    assert_eq!(number("89 f8"), None); // mov %edi,%eax
    assert_eq!(number("eb 05 b8 05000000 89 fb"), None); // entered behind the number
}

#[test]
fn only_the_parts_that_are_code_are_looked_at() {
    let code = code(&format!("31 c0 0f05 {CHECK}"));
    let within =
        |from, to| etude_sites::scan_within(&code, BASE, std::slice::from_ref(&(from..to))).sites.len();
    assert_eq!((within(BASE, HERE), within(HERE, HERE + 100), within(BASE, u64::MAX)), (0, 1, 1));
    assert_eq!(etude_sites::scan_within(&code, BASE, &[HERE..HERE + 20, BASE..HERE + 40]).sites.len(), 1);
}
