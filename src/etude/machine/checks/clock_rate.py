"""What makes the CPU's clock rate change."""

from etude.machine import snapshot, tree
from etude.machine.finding import NOTHING_TO_DO, Finding, Machine

CPUS = "sys/devices/system/cpu"
SUPPLIES = "sys/class/power_supply"


def governor(machine: Machine) -> Finding:
    meaning = "The clock rate follows the load, so that a run's speed depends on what ran before it."
    seen = snapshot.frequency(machine.root)
    if not seen["governors"]:
        advice = "on a virtual machine only its host can tell and fix the rate"
        return Finding("frequency governor", "not visible", "unknown", meaning, advice)
    state = ", ".join(seen["governors"]) + (f" ({', '.join(seen['drivers'])})" if seen["drivers"] else "")
    if seen["governors"] == ["performance"]:
        return Finding("frequency governor", state, "good", meaning, NOTHING_TO_DO)
    advice = "etude quiet on governor (writes performance to each policy's scaling_governor)"
    return Finding("frequency governor", state, "noisy", meaning, advice)


def turbo(machine: Machine) -> Finding:
    meaning = "Rates above the nominal one depend on temperature and on how many cores are busy."
    on = snapshot.turbo(machine.root)
    if on is None:
        return Finding("turbo", "not visible", "unknown", meaning, "look for it in the firmware's settings")
    if not on:
        return Finding("turbo", "off", "good", meaning, NOTHING_TO_DO)
    return Finding("turbo", "on", "noisy", meaning, "etude quiet on turbo")


def throttling(machine: Machine) -> Finding:
    meaning = "A hot CPU lowers its clock rate, most of all late in a long experiment."
    counts = [
        tree.read_int(machine.root, f"{CPUS}/{cpu}/thermal_throttle/{kind}_throttle_count")
        for cpu in tree.names(machine.root, CPUS)
        if cpu[:3] == "cpu" and cpu[3:].isdecimal()
        for kind in ("core", "package")
    ]
    known = [count for count in counts if count is not None]
    if not known:
        return Finding("thermal throttling", "not counted", "unknown", meaning, "watch the CPU's temperature")
    # The package's count stands at each of its CPUs: the largest says more than a sum would.
    if max(known) == 0:
        return Finding("thermal throttling", "never since boot", "good", meaning, NOTHING_TO_DO)
    advice = "cool the machine better, or turn turbo off"
    return Finding("thermal throttling", f"{max(known)} times since boot", "noisy", meaning, advice)


def power_supply(machine: Machine) -> Finding:
    meaning = "On battery, firmware and kernel save power at the expense of speed."
    kinds = {
        name: tree.read_text(machine.root, f"{SUPPLIES}/{name}/type")
        for name in tree.names(machine.root, SUPPLIES)
    }
    mains = [
        tree.read_int(machine.root, f"{SUPPLIES}/{name}/online") for name in kinds if kinds[name] == "Mains"
    ]
    discharging = any(
        tree.read_text(machine.root, f"{SUPPLIES}/{name}/status") == "Discharging"
        # the battery of a mouse is one too, but of scope Device
        and tree.read_text(machine.root, f"{SUPPLIES}/{name}/scope") != "Device"
        for name in kinds
        if kinds[name] == "Battery"
    )
    if discharging or (0 in mains and 1 not in mains):
        return Finding("power supply", "battery", "noisy", meaning, "plug the machine in")
    state = "mains" if 1 in mains else "no battery in use"
    return Finding("power supply", state, "good", meaning, NOTHING_TO_DO)
