use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;

fn plan(seed: u64) -> Plan {
    Plan { seed, high: 64 * MIB, low: 40 * MIB, total: 200 * MIB, piece: 32 << 10, streams: 8 }
}

fn all(plan: Plan) -> (Vec<Step>, History) {
    let mut history = History::new(plan);
    let steps = std::iter::from_fn(|| history.step()).collect();
    (steps, history)
}

#[test]
fn the_same_seed_is_the_same_history_and_another_is_another() {
    let (one, other, third) = (all(plan(7)), all(plan(7)), all(plan(8)));
    assert_eq!(one.0, other.0);
    assert_eq!(one.1.digest(), other.1.digest());
    assert_ne!(one.1.digest(), third.1.digest());
}

#[test]
fn the_last_flood_reaches_the_brim_once() {
    let (steps, history) = all(plan(1));
    assert_eq!(steps.iter().filter(|step| **step == Step::Brim).count(), 1);
    assert!(history.written() >= 200 * MIB);
}

#[test]
fn files_grow_in_turn() {
    let (steps, _) = all(plan(1));
    let files: Vec<u64> = steps
        .iter()
        .filter_map(|s| if let Step::Append { file, .. } = s { Some(*file) } else { None })
        .collect();
    let same = files.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(same * 4 < files.len(), "one in eight by chance");
}

#[test]
fn the_young_die_first() {
    let mut history = History::new(plan(3));
    let (mut ranks, mut young, mut deaths) = (Vec::new(), 0, 0);
    while let Some(step) = history.step() {
        match step {
            Step::Append { file, offset: 0, .. } => ranks.push(file),
            Step::Brim => break,
            Step::Delete { file } => {
                let place = ranks.iter().position(|found| *found == file).expect("it lived");
                young += usize::from(place * 2 >= ranks.len());
                deaths += 1;
                ranks.remove(place);
            }
            Step::Append { .. } => {}
        }
    }
    assert!(young * 10 > deaths * 8, "{young} of {deaths} were of the younger half");
    assert!(young < deaths, "and some were not");
}

#[test]
fn sizes_are_those_of_the_paper() {
    let mut history = History::new(Plan { high: 1 << 40, ..plan(5) });
    let mut sizes: Vec<u64> = (0..20_001).map(|_| history.birth().rest).collect();
    sizes.sort_unstable();
    let (median, upper) = (sizes[10_000] as f64, sizes[16_827] as f64); // 0.8413: one deviation above
    assert!((median.ln() - MU).abs() < 0.1, "median {median}");
    assert!(((upper / median).ln() - SIGMA).abs() < 0.1, "one deviation above {upper}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn what_lives_is_what_its_steps_say_and_ends_at_its_level(
        seed in any::<u64>(),
        high in 1u64..32,
        low in 0u64..32,
        times in 0u64..4,
        piece in 1u64..64,
        streams in 1u64..20,
        refused in proptest::collection::vec(1usize..400, 0..4),
    ) {
        let low = low.min(high - 1) * MIB;
        let plan = Plan { seed, high: high * MIB, low, total: times * high * MIB, piece: piece << 10, streams };
        let mut history = History::new(plan);
        let (mut files, mut count) = (HashMap::<u64, u64>::new(), 0);
        while let Some(step) = history.step() {
            count += 1;
            prop_assert!(count < 2_000_000, "it ends");
            match step {
                Step::Append { file, offset, bytes } => {
                    prop_assert!(bytes > 0);
                    let size = files.entry(file).or_insert(0);
                    prop_assert_eq!(*size, offset, "a file grows at its end");
                    if refused.contains(&count) {
                        history.full(file, bytes);
                    } else {
                        *size += bytes;
                    }
                }
                Step::Delete { file } => prop_assert!(files.remove(&file).is_some(), "what dies lived"),
                Step::Brim => {}
            }
            let lives: u64 = files.values().map(|bytes| blocks(*bytes)).sum();
            prop_assert!(lives < plan.high + 128 * 1024, "never far above its peak");
        }
        let lives: u64 = files.values().map(|bytes| blocks(*bytes)).sum();
        prop_assert!(lives <= plan.low);
        let mut living: Vec<_> = history.living().collect();
        let mut files: Vec<_> = files.into_iter().collect();
        living.sort_unstable();
        files.sort_unstable();
        prop_assert_eq!(living, files);
    }
}
