//! Asynchronous I/O: a request is a step where it is handed over, and another where the program takes its completion. What
//! came of it is known only then.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::rc::Rc;

use etude_calls::{Interface, Role, Set};
use etude_trace::Event;

use crate::from_trace::Walk;
use crate::from_trace::calls::called;
use crate::from_trace::rules;
use crate::from_trace::tables::{Behind, Opening};
use crate::model::{Dropped, UNKNOWN};

const NOT_RECORDED: &str = "asynchronous I/O, whose requests are not recorded";
const NOT_PLAYED: &str = "asynchronous I/O, whose requests are not played";

/// The queues of all processes.
#[derive(Default)]
pub(crate) struct Requests {
    queues: HashMap<(u32, Interface, u64), Queue>,
    /// By process: aio contexts so far. Where they stood in memory is different each time, so they are numbered.
    contexts: HashMap<u32, u64>,
}

#[derive(Default)]
struct Queue {
    /// What it is called in the script.
    number: u64,
    /// By tag: those whose completions were not taken, the oldest first.
    open: HashMap<u64, VecDeque<Request>>,
    /// Played ones among them.
    played: usize,
    /// Numbers that were given back, and the highest that was ever used.
    free: BinaryHeap<Reverse<u64>>,
    used: u64,
    /// By thread: since its last handover, how many were told, and played ones among them.
    told: HashMap<u32, (u64, u64)>,
}

enum Request {
    Played { number: u64, step: Option<usize>, opening: Rc<Opening>, event: Event },
    Dropped(&'static str, &'static str),
}

impl Requests {
    /// The process has other memory now, or none.
    pub fn end(&mut self, process: u32) {
        self.queues.retain(|(of, _, _), _| *of != process);
        self.contexts.remove(&process);
    }

    fn queue(&mut self, process: u32, interface: Interface, of: u64) -> &mut Queue {
        self.queues.entry((process, interface, of)).or_insert_with(|| {
            let number = match interface {
                Interface::Uring => of,
                Interface::Aio => {
                    let contexts = self.contexts.entry(process).or_default();
                    *contexts += 1;
                    *contexts
                }
            };
            Queue { number, ..Queue::default() }
        })
    }
}

impl Queue {
    /// The lowest number, from 1, that no open request has.
    fn lowest(&mut self) -> u64 {
        self.free.pop().map_or_else(
            || {
                self.used += 1;
                self.used
            },
            |Reverse(number)| number,
        )
    }
}

impl Walk<'_> {
    /// A row that is about requests.
    pub(crate) fn asynchronous(&mut self, (thread, process): (u32, u32), event: &Event, role: Role) {
        match role {
            Role::Request { interface, tag } => self.requested((thread, process), event, (interface, tag)),
            Role::Handover { interface } => self.hands_over((thread, process), event, interface),
            Role::Completion { interface } => self.completed((thread, process), event, interface),
        }
    }

    fn requested(
        &mut self,
        (thread, process): (u32, u32),
        event: &Event,
        (interface, tag): (Interface, usize),
    ) {
        let found = self.playable(process, event);
        let queue = self.requests.queue(process, interface, event.arguments[1]);
        let told = queue.told.entry(thread).or_default();
        told.0 += 1;
        let known_by = event.arguments[tag];
        let opening = match found {
            Ok(opening) => opening,
            Err(why) => {
                self.passes_by(process, event);
                let queue = self.requests.queue(process, interface, event.arguments[1]);
                let dropped = Request::Dropped(event.call.name(), why);
                queue.open.entry(known_by).or_default().push_back(dropped);
                return self.report.drops_transfers(event, why, (0, u64::from(rules::may_move(event))));
            }
        };
        told.1 += 1;
        queue.played += 1;
        let (number, mut made) = (queue.lowest(), called(event, &[]));
        (made.arguments[1], made.arguments[tag], made.result) = (queue.number, number, UNKNOWN);
        made.duration_ns = Some(0);
        let step = self.threads.call(thread, event, made);
        let queue = self.requests.queue(process, interface, event.arguments[1]);
        let request = Request::Played { number, step, opening, event: event.clone() };
        queue.open.entry(known_by).or_default().push_back(request);
    }

    /// What stands behind the descriptor of a request, if that is played.
    fn playable(&self, process: u32, event: &Event) -> Result<Rc<Opening>, &'static str> {
        if event.call.is_unknown_request() {
            let opcode = match event.call.name() {
                "sqe_other" => Set::Opcode.name(event.arguments[0]),
                _ => None,
            };
            return Err(opcode.unwrap_or("a kind of request that is not known"));
        }
        if let Some(why) = rules::impossible(event) {
            return Err(why);
        }
        let opening = self.kept(process, event.arguments[0] as i32)?;
        if opening.behind == Behind::File { Ok(opening) } else { Err("pipe") }
    }

    fn hands_over(&mut self, (thread, process): (u32, u32), event: &Event, interface: Interface) {
        self.threads.pays(thread, event);
        let told = match self.requests.queues.get_mut(&(process, interface, event.arguments[0])) {
            Some(queue) => {
                let told = queue.told.remove(&thread).unwrap_or_default();
                Some((told.0, told.1 > 0 || queue.played > 0, queue.number))
            }
            None => None,
        };
        let why = match told {
            None => NOT_RECORDED,
            Some((_, true, number)) if event.result >= 0 => {
                self.misses_requests(event, told.map_or(0, |told| told.0));
                let mut made = called(event, &[]);
                made.arguments[0] = number;
                self.threads.call(thread, event, made);
                return;
            }
            Some((0, ..)) if rules::handed_over(event) > 0 => NOT_RECORDED,
            Some(_) => NOT_PLAYED,
        };
        let unknown = rules::handed_over(event).saturating_sub(told.map_or(0, |told| told.0));
        self.report.drops_transfers(event, why, (0, unknown));
    }

    /// Requests that a call handed over beside those that were told.
    fn misses_requests(&mut self, event: &Event, told: u64) {
        let requests = rules::handed_over(event).saturating_sub(told);
        if requests > 0 {
            let missed = Dropped { calls: 1, requests, ..Dropped::default() };
            self.report.misses(event.call.name(), NOT_RECORDED, &missed);
        }
    }

    fn completed(&mut self, (thread, process): (u32, u32), event: &Event, interface: Interface) {
        let [of, tag, ..] = event.arguments;
        let queue = self.requests.queues.get_mut(&(process, interface, of));
        let found = queue.and_then(|queue| {
            let found = queue.open.get_mut(&tag)?.pop_front()?;
            if queue.open[&tag].is_empty() {
                queue.open.remove(&tag);
            }
            if let Request::Played { number, .. } = found {
                queue.free.push(Reverse(number));
                queue.played -= 1;
            }
            Some((queue.number, found))
        });
        match found {
            Some((queue, Request::Played { number, step, opening, event: asked })) => {
                if let Some(step) = step {
                    self.threads.answer(step, event.result);
                }
                self.data_of(&opening, &Event { result: event.result, ..asked });
                let mut made = called(event, &[]);
                (made.arguments[0], made.arguments[1], made.result) = (queue, number, 0);
                made.duration_ns = Some(0);
                self.threads.call(thread, event, made);
            }
            Some((_, Request::Dropped(name, why))) => {
                self.report.answers((name, why), event.result);
                self.report.drops_transfers(event, NOT_PLAYED, (0, 0));
            }
            None => self.report.drops_transfers(event, NOT_RECORDED, (0, 0)),
        }
    }
}
