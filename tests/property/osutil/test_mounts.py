"""Lines of /proc/self/mountinfo."""

from hypothesis import given
from hypothesis import strategies as st

from etude.osutil.mounts import parsed, unescaped

LINE = r"36 35 98:0 /mnt1 /a\040b rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue"


def escaped(text: str) -> str:
    return "".join(f"\\{ord(each):03o}" if each in " \t\n\\#" else each for each in text)


def test_a_line_is_read_with_its_optional_members() -> None:
    (mount,) = parsed(LINE + "\n")
    assert (mount.within, mount.target, mount.kind, mount.source) == ("/mnt1", "/a b", "ext3", "/dev/root")
    assert mount.options == ("rw", "noatime", "errors=continue")


@given(st.text(max_size=60))
def test_lines_that_are_none_are_left_out(text: str) -> None:
    assert len(list(parsed(text))) <= text.count("\n") + 1


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20))
def test_names_are_read_as_the_kernel_escapes_them(name: str) -> None:
    assert unescaped(escaped(name)) == name
