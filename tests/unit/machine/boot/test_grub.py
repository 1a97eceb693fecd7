"""Menus of GRUB: what is written in one is found again, however it is quoted and nested."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.machine.boot.entries import ID_OPTION, Item, menu

TEXTS = st.text(st.sampled_from("abÄ 01-_.,()#;|&{}$>'\"\\/=\t"), min_size=1, max_size=12).filter(
    lambda text: not text.startswith("--")
)
QUOTES = st.sampled_from(["single", "double", "backslash"])


def quoted(text: str, how: str) -> str:
    """A word as a menu may spell it."""
    if how == "single":
        return "'" + text.replace("'", "'\\''") + "'"
    if how == "double":
        return '"' + "".join(f"\\{c}" if c in '$"\\' else c for c in text) + '"'
    return "".join(c if c.isalnum() else f"\\{c}" for c in text)


@dataclass(frozen=True)
class Spelling:
    """A title, perhaps an id, in quotes of some kind; and where the id stands."""

    title: str
    name: str | None
    quotes: str
    id_option: str
    first: bool

    def heading(self) -> str:
        title = quoted(self.title, self.quotes)
        if self.name is None:
            return f"{title} --class gnu-linux --unrestricted"
        sign = "=" if self.id_option == "--id=" else " "
        name = f"{self.id_option.rstrip('=')}{sign}{quoted(self.name, self.quotes)}"
        words = [name, title] if self.first else [title, "--class os", name]
        return " ".join(words)


SPELLINGS = st.builds(
    Spelling, TEXTS, TEXTS | st.none(), QUOTES, st.sampled_from(["--id", "--id=", ID_OPTION]), st.booleans()
)
ENTRIES = st.tuples(SPELLINGS, st.lists(TEXTS, max_size=4), st.booleans())
MENUS = st.recursive(ENTRIES, lambda inner: st.tuples(SPELLINGS, st.lists(inner, max_size=3)), max_leaves=8)


def rendered(node: object, level: int = 0) -> str:
    pad = "\t" * level
    if len(node) == 2:  # type: ignore[arg-type]
        spelling, inner = node  # type: ignore[misc]
        body = "".join(rendered(each, level + 1) for each in inner)
        return f"{pad}submenu {spelling.heading()} {{\n{body}{pad}}}\n"
    spelling, options, initrd = node  # type: ignore[misc]
    words = " ".join(quoted(word, spelling.quotes) for word in options)
    load = f"{pad}  initrd /initrd.img-6\n" if initrd else ""
    return (
        f"{pad}menuentry {spelling.heading()} {{\n{pad}  # a menuentry 'comment' {{\n"
        f"{pad}  if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi\n"
        f"{pad}  echo 'Loading Linux 6 …'\n{pad}  linux /vmlinuz-6 {words}\n{load}{pad}}}\n"
    )


def expected(node: object, ids: tuple[str, ...] = (), titles: tuple[str, ...] = ()) -> list[Item]:
    spelling = node[0]  # type: ignore[index]
    ids = (*ids, spelling.name or spelling.title)
    titles = (*titles, spelling.title)
    if len(node) == 2:  # type: ignore[arg-type]
        return [item for each in node[1] for item in expected(each, ids, titles)]  # type: ignore[index]
    options, initrd = node[1:]  # type: ignore[index]
    line = " ".join(map(handed_over, options))
    return [Item(ids, titles, "/vmlinuz-6", line, ("/initrd.img-6",) if initrd else ())]


def handed_over(word: str) -> str:
    """What the kernel gets of a word: blanks are put in quotes, quotes and backslashes are escaped."""
    for special in "\\'\"":
        word = word.replace(special, f"\\{special}")
    return f'"{word}"' if " " in word else word


HEAD = """\
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
else
   set default="0"
fi
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
  fi
}
export menuentry_id_option
"""


@given(st.lists(MENUS, max_size=4))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_entry_is_found_with_its_path_kernel_and_command_line(menus: list[object]) -> None:
    text = HEAD + "".join(rendered(each) for each in menus)
    assert menu(text) == [item for each in menus for item in expected(each)]


@given(st.text(st.sampled_from("menuentry submenu 'ab\" {}\n;#\\$linux"), max_size=60))
def test_any_text_is_read_to_its_end(text: str) -> None:
    menu(text)


DEBIAN = """\
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-1f' {
    load_video
    insmod gzio
    if [ x$feature_platform_search_hint = xy ]; then
      search --no-floppy --fs-uuid --set=root --hint='hd0,gpt1'  1f
    else
      search --no-floppy --fs-uuid --set=root 1f
    fi
    echo    'Loading Linux 6.1.0-40-cloud-amd64 ...'
    linux    /boot/vmlinuz-6.1.0-40-cloud-amd64 root=UUID=1f ro  console=tty0 console=ttyS0,115200
    echo    'Loading initial ramdisk ...'
    initrd    /boot/initrd.img-6.1.0-40-cloud-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1f' {
    menuentry 'Debian GNU/Linux, with Linux 6.1.0-40-cloud-amd64' --class debian $menuentry_id_option 'gnulinux-6.1.0-40-cloud-amd64-advanced-1f' {
        linux    /boot/vmlinuz-6.1.0-40-cloud-amd64 root=UUID=1f ro
        initrd    /boot/early.img /boot/initrd.img-6.1.0-40-cloud-amd64
    }
}
if [ "$grub_platform" = "efi" ]; then
    fwsetup --is-supported
    if [ "$?" = 0 ]; then menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
            fwsetup
        }
    fi
fi
menuentry "one line" --id one { linux /k a=1 if then=2; initrd /i; boot }
menuentry no-block-follows
menuentry 'It'\\''s' { chainloader +1; }
"""  # noqa: E501


def test_a_menu_of_debian_is_read() -> None:
    found = menu(DEBIAN)
    assert [item.ids[-1] for item in found] == [
        "gnulinux-simple-1f",
        "gnulinux-6.1.0-40-cloud-amd64-advanced-1f",
        "uefi-firmware",
        "one",
        "It's",
    ]
    first, second, firmware, one, last = found
    assert first.options == "root=UUID=1f ro console=tty0 console=ttyS0,115200"
    assert first.kernel == "/boot/vmlinuz-6.1.0-40-cloud-amd64"
    assert second.titles[0].startswith("Advanced options")
    assert second.initrd == ("/boot/early.img", "/boot/initrd.img-6.1.0-40-cloud-amd64")
    assert (firmware.kernel, firmware.options, last.kernel) == (None, None, None)
    assert (one.kernel, one.options, one.initrd) == ("/k", "a=1 if then=2", ("/i",))


@pytest.mark.parametrize(
    "text", ["}\nmenuentry a {}\n", "function f { }\nmenuentry a { }\n", "{\n}\n;menuentry a {}"]
)
def test_an_entry_behind_another_block_is_found(text: str) -> None:
    assert [item.titles for item in menu(text)] == [("a",)]


def test_a_function_in_a_submenu_does_not_end_it() -> None:
    text = "submenu s {\n function f {\n  x\n }\n menuentry a { }\n}\nmenuentry b { }\n"
    assert [item.titles for item in menu(text)] == [("s", "a"), ("b",)]
