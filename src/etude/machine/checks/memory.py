"""How memory is laid out and where it may go."""

from etude.machine import snapshot, tree
from etude.machine.finding import NOTHING_TO_DO, Finding, Machine

MIB = 1 << 20


def swap(machine: Machine) -> Finding:
    meaning = "Memory that was swapped out is read back at the speed of the disk, in the middle of a run."
    seen = snapshot.memory(machine.root)
    if seen["swap_total_bytes"] is None or seen["swap_used_bytes"] is None:
        return Finding("swap", "not readable", "unknown", meaning, "mount /proc")
    moved = machine.after.swapped_pages - machine.before.swapped_pages
    if moved > 0:
        return Finding(
            "swap", f"swapping now ({moved} pages)", "noisy", meaning, "free memory, then etude quiet on swap"
        )
    if seen["swap_used_bytes"] > 0:
        state = f"{seen['swap_used_bytes'] / MIB:.0f} MiB in use"
        return Finding("swap", state, "noisy", meaning, "etude quiet on swap")
    state = "unused" if seen["swap_total_bytes"] else "none"
    return Finding("swap", state, "good", meaning, NOTHING_TO_DO)


def huge_pages(machine: Machine) -> Finding:
    meaning = (
        "Whether a process gets huge pages depends on free memory, and the kernel merges pages behind it."
    )
    chosen = tree.read_chosen(machine.root, "sys/kernel/mm/transparent_hugepage/enabled")
    if chosen is None:
        return Finding("huge pages", "not available", "good", meaning, NOTHING_TO_DO)
    if chosen == "always":
        advice = "etude quiet on thp (madvise instead of always)"
        return Finding("huge pages", chosen, "noisy", meaning, advice)
    return Finding("huge pages", chosen, "good", meaning, NOTHING_TO_DO)


def address_layout(machine: Machine) -> Finding:
    """Random layouts are the good case: their spread is seen and averaged, one fixed layout's bias is not."""
    meaning = "Speed depends on where memory lies; only random layouts let trials average over that luck."
    mode = tree.read_int(machine.root, "proc/sys/kernel/randomize_va_space")
    if mode is None:
        return Finding("address layout", "not readable", "unknown", meaning, "mount /proc")
    state = {0: "fixed (ASLR off)", 1: "random but for the heap", 2: "random (ASLR on)"}.get(mode, str(mode))
    if mode >= 2:
        return Finding("address layout", state, "good", meaning, NOTHING_TO_DO)
    return Finding(
        "address layout", state, "noisy", meaning, "etude quiet on aslr (kernel.randomize_va_space=2)"
    )
