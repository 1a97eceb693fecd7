"""Whose the CPUs are."""

from etude.machine import snapshot, tree
from etude.machine.finding import NOTHING_TO_DO, Finding, Machine

CPUS = "sys/devices/system/cpu"


def smt(machine: Machine) -> Finding:
    meaning = "Two hardware threads share a core's units and caches, so that one slows the other down."
    active = tree.read_text(machine.root, f"{CPUS}/smt/active")
    if active is None:
        return Finding("SMT", "not visible", "unknown", meaning, "compare `lscpu` with the CPU's data sheet")
    if active == "0":
        return Finding("SMT", "off", "good", meaning, NOTHING_TO_DO)
    advice = f"write off to /{CPUS}/smt/control, or leave the sibling of each measured CPU idle"
    return Finding("SMT", "on", "noisy", meaning, advice)


def isolated_cpus(machine: Machine) -> Finding:
    meaning = "On a CPU that is not isolated the scheduler may run other processes beside the measured one."
    isolated = tree.read_cpus(machine.root, f"{CPUS}/isolated")
    if isolated is None:
        return Finding("isolated CPUs", "not visible", "unknown", meaning, NOTHING_TO_DO)
    if not isolated:  # as on nearly all machines: what runs there is another check's
        return Finding("isolated CPUs", "none, as usual", "good", meaning, NOTHING_TO_DO)
    state = ", ".join(map(str, isolated))
    allowed = snapshot.allowed_cpus(machine.root) or []
    if set(allowed) <= set(isolated):
        return Finding("isolated CPUs", state, "good", meaning, NOTHING_TO_DO)
    advice = f"run the command there: taskset -c {','.join(map(str, isolated))}"
    return Finding("isolated CPUs", f"{state}, not used", "noisy", meaning, advice)


def virtualisation(machine: Machine) -> Finding:
    meaning = "A virtual machine shares CPUs, caches and devices with neighbours that it cannot see."
    seen = snapshot.virtualisation(machine.root)
    product = " ".join(seen[key] for key in ("vendor", "product") if seen[key])
    if seen["hypervisor_flag"] or seen["hypervisor"]:
        state = f"virtual machine ({product or seen['hypervisor'] or 'unnamed'})"
        advice = "use a machine of your own; else interleave what you compare, and repeat on another day"
        return Finding("virtualisation", state, "noisy", meaning, advice)
    if seen["hypervisor_flag"] is None and not product:
        advice = "find out whether the machine is virtual"
        return Finding("virtualisation", "not visible", "unknown", meaning, advice)
    if any(word in product for word in ("KVM", "QEMU", "Virtual", "VMware", "Amazon EC2", "Google Compute")):
        # ARM has no flag for it, and a provider's bare-metal machines carry the same name: nothing proves it.
        return Finding(
            "virtualisation", product, "unknown", meaning, "find out whether the machine is virtual"
        )
    return Finding("virtualisation", f"none seen ({product or 'unnamed'})", "good", meaning, NOTHING_TO_DO)
