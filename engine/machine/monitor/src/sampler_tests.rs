//! Sampling machines that are laid out as files.

use crate::sampler::Sampler;
use crate::source::Kind;
use crate::tree::Tree;

/// The value of a column in the last reading.
fn value(sampler: &Sampler, name: &str) -> Option<f64> {
    let at = sampler.columns().iter().position(|column| column.name == name);
    sampler.values()[at.unwrap_or_else(|| panic!("there is no column {name}"))]
}

fn names(sampler: &Sampler, group: &str) -> Vec<String> {
    let names = sampler.columns().iter().map(|column| column.name.clone());
    names.filter(|name| name.starts_with(group)).collect()
}

fn why(sampler: &Sampler, name: &str) -> Option<String> {
    sampler.absent().into_iter().find(|(found, _)| found == name).map(|(_, why)| why)
}

fn disk(name: &str, reads: i64, sectors: i64, busy_ms: i64) -> String {
    format!("   8       0 {name} {reads} 0 {sectors} 0 0 0 0 0 0 {busy_ms} 0 0 0 0 0 0 0\n")
}

fn interface(name: &str, received: i64) -> String {
    format!("  {name}: {received} 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n")
}

#[test]
fn the_first_sample_is_compared_with_the_reading_at_the_start() {
    let tree = Tree::new(&[("proc/stat", "cpu  100 0 0 5\ncpu0 100\nctxt 7\nprocs_running 3\n")]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    tree.put("proc/stat", "cpu  142 0 0 5\ncpu0 142\nctxt 9\nprocs_running 4\n");
    assert!(!sampler.read());
    assert_eq!(value(&sampler, "cpu.user"), Some(0.42));
    assert_eq!(value(&sampler, "cpu.idle"), Some(0.0));
    assert_eq!(value(&sampler, "switches"), Some(2.0));
    assert_eq!(value(&sampler, "tasks.runnable"), Some(4.0), "a level");
    assert_eq!(value(&sampler, "cpu.steal"), None, "what the kernel does not say");
}

#[test]
fn a_counter_that_goes_backwards_is_null_and_the_next_interval_is_not() {
    let tree = Tree::new(&[("proc/net/dev", &interface("eth0", 5000))]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    let mut received = |bytes| {
        tree.put("proc/net/dev", &interface("eth0", bytes));
        sampler.read();
        value(&sampler, "net.eth0.received")
    };
    assert_eq!([5600, 100, 130].map(&mut received), [Some(600.0), None, Some(30.0)]);
}

#[test]
fn a_new_interface_begins_with_null_and_those_that_stay_go_on() {
    let tree = Tree::new(&[("proc/net/dev", &interface("eth0", 100))]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    tree.put("proc/net/dev", &(interface("br0", 70) + &interface("eth0", 150)));
    assert!(sampler.read(), "there are new columns");
    assert_eq!(value(&sampler, "net.br0.received"), None);
    assert_eq!(value(&sampler, "net.eth0.received"), Some(50.0));
    tree.put("proc/net/dev", &interface("br0", 80));
    assert!(sampler.read(), "one is gone");
    assert_eq!(value(&sampler, "net.br0.received"), Some(10.0));
    assert!(names(&sampler, "net.eth0").is_empty());
}

#[test]
fn whole_disks_are_followed_and_partitions_are_not() {
    let text = disk("sda", 5, 10, 7) + &disk("sda1", 5, 10, 7) + &disk("cciss/c0d0", 1, 2, 3);
    let tree = Tree::new(&[
        ("proc/diskstats", &text),
        ("sys/block/sda/size", "1000\n"),
        ("sys/block/cciss!c0d0/size", "1000\n"),
    ]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    tree.put("proc/diskstats", &text.replace("sda 5 0 10", "sda 6 0 14").replace(" 7 0", " 507 0"));
    assert!(!sampler.read());
    assert_eq!(names(&sampler, "disk.").len(), 10);
    assert_eq!(value(&sampler, "disk.sda.read"), Some(2048.0));
    assert_eq!(value(&sampler, "disk.sda.busy"), Some(0.5));
    assert_eq!(value(&sampler, "disk.cciss/c0d0.reads"), Some(0.0));
}

#[test]
fn a_loop_device_is_followed_from_its_first_request_on() {
    let tree = Tree::new(&[("proc/diskstats", &disk("loop0", 9, 8, 1)), ("sys/block/loop0/size", "0\n")]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    assert!(names(&sampler, "disk.").is_empty());
    tree.put("sys/block/loop0/size", "2048\n");
    tree.put("proc/diskstats", &disk("loop0", 10, 16, 2));
    assert!(sampler.read());
    assert_eq!(value(&sampler, "disk.loop0.read"), None, "what it did before it was followed is not known");
    tree.put("proc/diskstats", &disk("loop0", 11, 24, 3));
    assert!(!sampler.read());
    assert_eq!(value(&sampler, "disk.loop0.read"), Some(4096.0));
}

#[test]
fn within_sixty_samples_a_loop_device_without_a_file_is_left_again() {
    let tree = Tree::new(&[("proc/diskstats", &disk("loop0", 9, 8, 1)), ("sys/block/loop0/size", "64\n")]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    tree.put("sys/block/loop0/size", "0\n");
    let changes = (0..60).filter(|_| sampler.read()).count();
    assert_eq!((changes, names(&sampler, "disk.").len()), (1, 0));
}

#[test]
fn two_sensors_of_a_chip_and_a_zone_have_their_own_columns() {
    let tree = Tree::new(&[
        ("sys/class/hwmon/hwmon0/name", "k10temp\n"),
        ("sys/class/hwmon/hwmon0/temp1_input", "45125\n"),
        ("sys/class/hwmon/hwmon0/temp1_label", "Tctl\n"),
        ("sys/class/hwmon/hwmon0/temp3_input", "-2500\n"),
        ("sys/class/hwmon/hwmon0/fan1_input", "900\n"),
        ("sys/class/thermal/thermal_zone0/type", "acpitz\n"),
        ("sys/class/thermal/thermal_zone0/temp", "27800\n"),
    ]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    assert_eq!(
        names(&sampler, "temperature."),
        ["temperature.k10temp.tctl", "temperature.k10temp.temp3", "temperature.acpitz"]
    );
    assert_eq!(value(&sampler, "temperature.k10temp.tctl"), Some(45.125));
    assert_eq!(value(&sampler, "temperature.k10temp.temp3"), Some(-2.5));
    tree.put("sys/class/hwmon/hwmon0/temp1_input", "90000\n");
    sampler.read();
    assert_eq!(value(&sampler, "temperature.k10temp.tctl"), Some(90.0));
}

#[test]
fn cores_are_left_out_where_the_package_has_a_sensor_and_disks_are_not_asked() {
    let tree = Tree::new(&[
        ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
        ("sys/class/hwmon/hwmon0/temp1_input", "50000\n"),
        ("sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n"),
        ("sys/class/hwmon/hwmon0/temp2_input", "49000\n"),
        ("sys/class/hwmon/hwmon0/temp2_label", "Core 0\n"),
        ("sys/class/hwmon/hwmon1/name", "nvme\n"),
        ("sys/class/hwmon/hwmon1/temp1_input", "38850\n"),
        ("sys/class/hwmon/hwmon2/name", "coretemp\n"),
        ("sys/class/hwmon/hwmon2/temp1_input", "51000\n"),
        ("sys/class/hwmon/hwmon2/temp1_label", "Package id 0\n"),
        ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
        ("sys/class/thermal/thermal_zone0/temp", "50000\n"),
    ]);
    let sampler = Sampler::open(&tree.root()).unwrap();
    let expected = ["temperature.coretemp.package_id_0", "temperature.coretemp.package_id_0_2"];
    assert_eq!(names(&sampler, "temperature."), expected);
    assert!(why(&sampler, "temperature.nvme").unwrap().contains("a command each time"));
}

#[test]
fn a_sensor_that_stops_answering_is_null_and_then_gone() {
    let tree = Tree::new(&[
        ("sys/class/hwmon/hwmon0/name", "k10temp\n"),
        ("sys/class/hwmon/hwmon0/temp1_input", "45125\n"),
    ]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    tree.put("sys/class/hwmon/hwmon0/temp1_input", "");
    assert!(!sampler.read());
    assert_eq!(value(&sampler, "temperature.k10temp.temp1"), None);
    assert_eq!((0..60).filter(|_| sampler.read()).count(), 1);
    assert!(why(&sampler, "temperature.k10temp.temp1").is_some());
}

#[test]
fn up_to_eight_cpus_have_a_frequency_each() {
    let tree = Tree::new(&[
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3400000\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "800000\n"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "1\n"),
    ]);
    let sampler = Sampler::open(&tree.root()).unwrap();
    assert_eq!(names(&sampler, "frequency."), ["frequency.0", "frequency.1"]);
    assert_eq!(value(&sampler, "frequency.0"), Some(3.4e9));
}

/// 128 CPUs in two packages, two a core.
fn large() -> Tree {
    let tree = Tree::new(&[]);
    let cpus: String = (0..128).map(|cpu| format!("cpu{cpu} 1 0 0 0 0 0 0 0 0 0\n")).collect();
    tree.put("proc/stat", &format!("cpu  128 0 0 0 0 0 0 0 0 0\n{cpus}ctxt 1\n"));
    for cpu in 0..128 {
        let at = |file: &str| format!("sys/devices/system/cpu/cpu{cpu}/{file}");
        tree.put(&at("cpufreq/scaling_cur_freq"), &format!("{}\n", 1_000_000 + 1000 * cpu));
        tree.put(&at("topology/thread_siblings_list"), &format!("{},{}\n", cpu % 64, cpu % 64 + 64));
        tree.put(
            &at("topology/core_siblings_list"),
            if cpu % 64 < 32 { "0-31,64-95\n" } else { "32-63,96-127\n" },
        );
        tree.put(&at("thermal_throttle/core_throttle_count"), "1\n");
        tree.put(&at("thermal_throttle/package_throttle_count"), "10\n");
    }
    tree
}

#[test]
fn of_128_cpus_frequencies_are_told_as_three() {
    let tree = large();
    let sampler = Sampler::open(&tree.root()).unwrap();
    assert_eq!(sampler.cpus().len(), 128);
    assert_eq!(names(&sampler, "frequency."), ["frequency.min", "frequency.mean", "frequency.max"]);
    let told = ["min", "mean", "max"].map(|name| value(&sampler, &format!("frequency.{name}")).unwrap());
    assert_eq!(told, [1e9, 1.0635e9, 1.127e9]);
}

#[test]
fn an_event_of_throttling_counts_once_for_a_core_and_once_for_a_package() {
    let tree = large();
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    for cpu in [3, 67] {
        tree.put(&format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count"), "3\n");
    }
    for cpu in (0..32).chain(64..96) {
        tree.put(&format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/package_throttle_count"), "11\n");
    }
    sampler.read();
    assert_eq!(value(&sampler, "throttle.count"), Some(3.0));
}

#[test]
fn a_cpu_that_goes_is_told_and_devices_are_looked_for_again() {
    let tree = large();
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    tree.put("proc/stat", "cpu  100 0 0 0 0 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\nctxt 1\n");
    for cpu in 8..128 {
        tree.remove(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq"));
    }
    assert!(sampler.read() && sampler.cpus_changed());
    assert_eq!(sampler.cpus(), [0]);
    assert_eq!(value(&sampler, "cpu.user"), None, "the sum went backwards");
    assert_eq!(names(&sampler, "frequency.").len(), 8);
}

#[test]
fn what_is_not_there_has_a_reason_and_no_column() {
    let tree = Tree::new(&[("proc/meminfo", "MemFree: 5 kB\n"), ("proc/diskstats", "")]);
    let sampler = Sampler::open(&tree.root()).unwrap();
    for name in
        ["load", "paging", "pressure", "throttle", "temperature", "frequency", "disk", "net", "memory.dirty"]
    {
        let why = why(&sampler, name).unwrap_or_else(|| panic!("nothing is said of {name}"));
        assert!(why.len() > 10 && why.lines().count() == 1, "{name}: {why}");
    }
    assert_eq!(names(&sampler, "memory."), ["memory.free"]);
    assert_eq!(value(&sampler, "memory.free"), Some(5120.0));
}

#[test]
fn pressure_without_full_is_that_of_older_kernels() {
    let both = "some avg10=0.00 total=2500000\nfull avg10=0.00 total=1000000\n";
    let tree = Tree::new(&[
        ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
        ("proc/pressure/io", "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n"),
    ]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    tree.put("proc/pressure/io", both);
    sampler.read();
    assert_eq!(names(&sampler, "pressure.cpu"), ["pressure.cpu.some"]);
    assert_eq!(value(&sampler, "pressure.io.some"), Some(2.5));
    assert_eq!(value(&sampler, "pressure.io.full"), Some(1.0));
    assert!(why(&sampler, "pressure.memory").is_some() && why(&sampler, "pressure.cpu.full").is_some());
}

#[test]
fn without_proc_there_is_nothing_to_sample() {
    let tree = Tree::new(&[]);
    tree.remove("proc/stat");
    assert!(Sampler::open(&tree.root()).is_err());
}

#[test]
fn a_file_that_cannot_be_read_for_once_costs_its_own_values_and_shifts_none() {
    let tree = Tree::new(&[
        ("proc/pressure/io", "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n"),
        ("proc/net/dev", &interface("eth0", 100)),
    ]);
    let mut sampler = Sampler::open(&tree.root()).unwrap();
    tree.put("proc/pressure/io", "");
    tree.put("proc/net/dev", &interface("eth0", 160));
    assert!(!sampler.read());
    assert_eq!(value(&sampler, "pressure.io.some"), None);
    assert_eq!(value(&sampler, "net.eth0.received"), Some(60.0));
    assert!(sampler.columns().iter().all(|column| column.kind == Kind::Level || column.per > 0.0));
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]
        #[test]
        fn whatever_the_kernel_says_there_is_a_value_for_each_column_and_no_interval_is_negative(
            texts in proptest::collection::vec("((cpu ?|ctxt|some|eth[01]:|8 0 sd[ab]|MemFree:)[ 0-9=:a-z]{0,60}\n){0,5}", 2..6),
        ) {
            let files = ["proc/stat", "proc/diskstats", "proc/net/dev", "proc/meminfo", "proc/pressure/io"];
            let tree = Tree::new(&[("sys/block/sda/size", "8\n"), ("sys/block/sdb/size", "8\n")]);
            let mut sampler = Sampler::open(&tree.root()).unwrap();
            for text in texts {
                for file in files {
                    tree.put(file, &text);
                }
                sampler.read();
                prop_assert_eq!(sampler.values().len(), sampler.columns().len());
                for (column, value) in sampler.columns().iter().zip(sampler.values()) {
                    prop_assert!(column.kind == Kind::Level || value.is_none_or(|value| value >= 0.0), "{}", column.name);
                }
            }
        }
    }
}
