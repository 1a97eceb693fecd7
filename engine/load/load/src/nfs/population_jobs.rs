//! Jobs of a population: many under way, each with one call, whose answer may bring further jobs.

use std::collections::{HashMap, VecDeque};
use std::thread;
use std::time::Duration;

use etude_clock::monotonic_ns;
use etude_nfs::Failure;

use crate::nfs::pool::{Place, Pool};

/// On each connection.
const UNDER_WAY: usize = 64;
/// A server may ask to be asked again later (NFS3ERR_JUKEBOX); so often it is, in a row.
const LATER: usize = 600;
const LATER_PAUSE: Duration = Duration::from_millis(100);

/// What is done for jobs, by whoever knows them.
pub(crate) trait Worker {
    type Job: Copy;

    /// Makes its call. None: there is no connection.
    fn call(&mut self, pool: &mut Pool, tag: u64, job: Self::Job) -> Option<Place>;

    /// Takes its answer; what is to be done now is appended.
    ///
    /// # Errors
    /// What ends all.
    fn answered(
        &mut self,
        job: Self::Job,
        answer: Result<&[u8], Failure>,
        jobs: &mut VecDeque<Self::Job>,
    ) -> Result<(), String>;

    /// What it is, for messages: "making a/b".
    fn what(&self, job: Self::Job) -> String;
}

/// Until no job is left.
///
/// # Errors
/// One line: the job that failed, and why.
pub(crate) fn work<W: Worker>(
    pool: &mut Pool,
    worker: &mut W,
    mut jobs: VecDeque<W::Job>,
    patience: Duration,
) -> Result<(), String> {
    let most = UNDER_WAY * pool.connections();
    let patience_ns = patience.as_nanos() as u64;
    let (mut under_way, mut tag, mut later) = (HashMap::new(), 0, 0);
    let mut heard_ns = monotonic_ns();
    while !(jobs.is_empty() && under_way.is_empty()) {
        while under_way.len() < most
            && let Some(job) = jobs.pop_front()
        {
            tag += 1;
            if worker.call(pool, tag, job).is_none() {
                return Err(format!("{}: {}", worker.what(job), Failure::Connect));
            }
            under_way.insert(tag, job);
        }
        let (mut wrong, mut postponed, mut heard) = (None, false, false);
        let listened = pool.listen(heard_ns + patience_ns, &mut |tag, answer| {
            let Some(job) = under_way.remove(&tag) else { return };
            heard = true;
            if matches!(answer_status(answer.as_ref().ok()), Some(JUKEBOX)) && later < LATER {
                jobs.push_back(job);
                postponed = true;
            } else if let Err(line) = worker.answered(job, answer, &mut jobs) {
                wrong.get_or_insert(line);
            }
        });
        listened.map_err(|error| format!("the machine does not allow it: {error}"))?;
        if let Some(line) = wrong {
            return Err(line);
        }
        let now = monotonic_ns();
        if heard {
            heard_ns = now;
        } else if now >= heard_ns + patience_ns
            && let Some(job) = under_way.values().next()
        {
            return Err(format!("{}: no answer within {} s", worker.what(*job), patience.as_secs_f64()));
        }
        later = if postponed { later + 1 } else { 0 };
        if postponed {
            thread::sleep(LATER_PAUSE);
        }
    }
    Ok(())
}

const JUKEBOX: u32 = 10008;

/// The first word of a body: all of NFS begin with a status.
fn answer_status(body: Option<&&[u8]>) -> Option<u32> {
    body?.first_chunk().map(|word| u32::from_be_bytes(*word))
}
