//! Makes what of a file set is missing, and puts right what is otherwise: each thing after the directory in which it is.

use std::collections::{HashMap, VecDeque};

use etude_nfs::{Call, Failure, Handle, answers};
use etude_workload::Object;

use crate::file_set::incompressible_data::Pieces;
use crate::nfs::objects::Objects;
use crate::nfs::pool::{Place, Pool};
use crate::nfs::population_jobs::Worker;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Job {
    Make {
        object: Object,
        directory: Handle,
    },
    /// The server made it without telling its handle.
    Find {
        object: Object,
        directory: Handle,
    },
    /// From there on.
    Fill {
        file: usize,
        handle: Handle,
        from: u64,
    },
    Cut {
        file: usize,
        handle: Handle,
    },
    /// Whether it leads where it should.
    Follow {
        link: usize,
        handle: Handle,
    },
    /// A link that leads elsewhere is made anew.
    Remove {
        link: usize,
    },
}

pub(crate) struct Make<'a> {
    objects: &'a mut Objects,
    children: Vec<Vec<Object>>,
    data: Pieces,
    most_write_bytes: usize,
    progress: &'a mut dyn FnMut(usize, usize),
    /// Files, directories and links that are as they should be, of all.
    done: usize,
    all: usize,
}

impl<'a> Make<'a> {
    pub fn new(
        objects: &'a mut Objects,
        data: Pieces,
        most_write_bytes: usize,
        progress: &'a mut dyn FnMut(usize, usize),
    ) -> Make<'a> {
        let children = objects.population.contents();
        let all = objects.population.all_at_first().count();
        Make { objects, children, data, most_write_bytes, progress, done: 0, all }
    }

    /// What is to be done, where files that are there have these sizes.
    pub fn first(&mut self, sizes: &HashMap<usize, u64>) -> VecDeque<Job> {
        let mut jobs = VecDeque::new();
        for object in self.objects.population.all_at_first().collect::<Vec<_>>() {
            match (self.objects.handle(object), object) {
                (Some(handle), Object::File(file)) => {
                    let bytes = self.objects.population.set.file(file).bytes;
                    match sizes.get(&file).copied().unwrap_or(0) {
                        found if found > bytes => jobs.push_back(Job::Cut { file, handle }),
                        found if found < bytes => jobs.push_back(Job::Fill { file, handle, from: found }),
                        _ => self.one_done(),
                    }
                }
                (Some(handle), Object::Link(link)) => jobs.push_back(Job::Follow { link, handle }),
                (Some(_), Object::Directory(_)) => self.one_done(),
                // Once its directory is there, it brings what is in it.
                (None, _) => {
                    let parent = Object::Directory(self.objects.population.place(object).0);
                    if let Some(directory) = self.objects.handle(parent) {
                        jobs.push_back(Job::Make { object, directory });
                    }
                }
            }
        }
        jobs
    }

    fn one_done(&mut self) {
        self.done += 1;
        (self.progress)(self.done, self.all);
    }

    fn made(&mut self, object: Object, handle: Handle, jobs: &mut VecDeque<Job>) {
        self.objects.know(object, Some(handle));
        match object {
            Object::File(file) if self.objects.population.set.file(file).bytes > 0 => {
                jobs.push_front(Job::Fill { file, handle, from: 0 });
            }
            Object::Directory(index) => {
                self.one_done();
                let inside = self.children[index].iter();
                jobs.extend(inside.map(|child| Job::Make { object: *child, directory: handle }));
            }
            _ => self.one_done(),
        }
    }

    fn take(&mut self, job: Job, body: &[u8], jobs: &mut VecDeque<Job>) -> Result<(), Failure> {
        match job {
            Job::Make { object, directory } => match answers::created(body)? {
                Some(handle) => self.made(object, handle, jobs),
                None => jobs.push_front(Job::Find { object, directory }),
            },
            Job::Find { object, .. } => self.made(object, answers::looked_up(body)?.0, jobs),
            Job::Fill { file, handle, from } => {
                let from = match answers::written(body)? {
                    0 => return Err(Failure::Status("SHORT_WRITE")),
                    bytes => from + u64::from(bytes),
                };
                if from < self.objects.population.set.file(file).bytes {
                    jobs.push_front(Job::Fill { file, handle, from });
                } else {
                    self.one_done();
                }
            }
            Job::Cut { .. } => {
                answers::changed(body)?;
                self.one_done();
            }
            Job::Follow { link, .. } => {
                if answers::target(body)? == self.objects.population.set.link(link).to.as_bytes() {
                    self.one_done();
                } else {
                    jobs.push_front(Job::Remove { link });
                }
            }
            Job::Remove { link } => {
                answers::changed(body)?;
                let object = Object::Link(link);
                let directory = self.directory(object).ok_or(Failure::Status("NFS3ERR_STALE"))?;
                jobs.push_front(Job::Make { object, directory });
            }
        }
        Ok(())
    }

    fn directory(&self, object: Object) -> Option<Handle> {
        self.objects.handle(Object::Directory(self.objects.population.place(object).0))
    }
}

impl Worker for Make<'_> {
    type Job = Job;

    fn call(&mut self, pool: &mut Pool, tag: u64, job: Job) -> Option<Place> {
        let name = |object| self.objects.population.place(object).1;
        match job {
            Job::Make { object, directory } => {
                let (directory, name) = (&directory, name(object));
                let name = name.as_bytes();
                match object {
                    Object::Directory(_) => pool.call(tag, &Call::Mkdir { directory, name }),
                    Object::File(_) => pool.call(tag, &Call::Create { directory, name }),
                    Object::Link(link) => {
                        let to = self.objects.population.set.link(link).to;
                        pool.call(tag, &Call::Symlink { directory, name, to: to.as_bytes() })
                    }
                }
            }
            Job::Find { object, directory } => {
                pool.call(tag, &Call::Lookup { directory: &directory, name: name(object).as_bytes() })
            }
            Job::Fill { file, handle, from } => {
                let rest = self.objects.population.set.file(file).bytes.saturating_sub(from);
                let bytes = rest.min(self.most_write_bytes as u64) as usize;
                let data = self.data.next(bytes);
                pool.call(tag, &Call::Write { file: &handle, offset: from, data, durable: false })
            }
            Job::Cut { file, handle } => {
                let size = Some(self.objects.population.set.file(file).bytes);
                pool.call(tag, &Call::Setattr { object: &handle, size })
            }
            Job::Follow { handle, .. } => pool.call(tag, &Call::Readlink { link: &handle }),
            Job::Remove { link } => {
                let object = Object::Link(link);
                let directory = self.directory(object)?;
                pool.call(tag, &Call::Remove { directory: &directory, name: name(object).as_bytes() })
            }
        }
    }

    fn answered(
        &mut self,
        job: Job,
        answer: Result<&[u8], Failure>,
        jobs: &mut VecDeque<Job>,
    ) -> Result<(), String> {
        let done = answer.and_then(|body| self.take(job, body, jobs));
        done.map_err(|failure| format!("{}: {failure}", self.what(job)))
    }

    fn what(&self, job: Job) -> String {
        let (verb, object) = match job {
            Job::Make { object, .. } => ("making", object),
            Job::Find { object, .. } => ("looking for", object),
            Job::Fill { file, .. } => ("filling", Object::File(file)),
            Job::Cut { file, .. } => ("cutting", Object::File(file)),
            Job::Follow { link, .. } => ("following", Object::Link(link)),
            Job::Remove { link } => ("removing", Object::Link(link)),
        };
        format!("{verb} {:?}", self.objects.population.path(object))
    }
}
