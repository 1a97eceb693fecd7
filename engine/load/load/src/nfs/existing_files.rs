//! What of a file set is there already: every directory of it is read, and what is in it compared.

use std::collections::{HashMap, VecDeque};

use etude_nfs::{Attributes, Call, Failure, Form, Handle, answers};
use etude_workload::Object;

use crate::nfs::objects::Objects;
use crate::nfs::pool::{Place, Pool};
use crate::nfs::population_jobs::Worker;

/// Of one answer to READDIRPLUS.
const PAGE_BYTES: u32 = 65536;

/// What stands in the way: it is in a directory of the set, and not of the set, or not yet.
#[derive(Debug, Clone)]
pub(crate) struct Surplus {
    pub directory: Handle,
    pub name: Vec<u8>,
    pub form: Form,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Job {
    /// Of that directory, from there on.
    List { directory: usize, handle: Handle, cookie: u64, verifier: [u8; 8] },
    /// The server listed it without its handle.
    Find { object: Object, directory: Handle },
}

/// A name, what of the set it is, and what the server told of it.
type Listed = (Vec<u8>, Option<Object>, Option<Attributes>, Option<Handle>);

/// A directory that is being read: which names it should have.
type Names = HashMap<Vec<u8>, Object>;

pub(crate) struct Look<'a> {
    objects: &'a mut Objects,
    /// What is in each directory of the set.
    children: Vec<Vec<Object>>,
    reading: HashMap<usize, Names>,
    /// Of each file that is there.
    pub sizes: HashMap<usize, u64>,
    pub surplus: Vec<Surplus>,
}

impl<'a> Look<'a> {
    pub fn new(objects: &'a mut Objects) -> Look<'a> {
        let children = objects.population.contents();
        Look { objects, children, reading: HashMap::new(), sizes: HashMap::new(), surplus: Vec::new() }
    }

    /// The first job: the root, whose handle is known.
    pub fn first(&self) -> VecDeque<Job> {
        self.objects.handle(Object::Directory(0)).map(|root| list(0, root)).into_iter().collect()
    }

    fn page(
        &mut self,
        directory: usize,
        handle: Handle,
        body: &[u8],
        jobs: &mut VecDeque<Job>,
    ) -> Result<(), Failure> {
        let (objects, children) = (&*self.objects, &self.children);
        let names = self.reading.entry(directory).or_insert_with(|| {
            let there = children[directory].iter();
            there.map(|object| (objects.population.place(*object).1.into_bytes(), *object)).collect()
        });
        let mut found: Vec<Listed> = Vec::new();
        let page = answers::entries(body, true, |entry| {
            if entry.name != b"." && entry.name != b".." {
                let object = names.get(entry.name).copied();
                found.push((entry.name.to_vec(), object, entry.attributes, entry.handle));
            }
        })?;
        if page.last || page.count == 0 {
            self.reading.remove(&directory);
        } else {
            jobs.push_front(Job::List { directory, handle, cookie: page.cookie, verifier: page.verifier });
        }
        for (name, object, attributes, child) in found {
            match (object, attributes, child) {
                (Some(object), Some(attributes), Some(child)) if form(object) == attributes.form => {
                    self.found(object, attributes, child, jobs);
                }
                (Some(object), None, _) | (Some(object), _, None) => {
                    jobs.push_back(Job::Find { object, directory: handle });
                }
                (_, attributes, _) => {
                    let form = attributes.map_or(Form::Other, |attributes| attributes.form);
                    self.surplus.push(Surplus { directory: handle, name, form });
                }
            }
        }
        Ok(())
    }

    fn found(&mut self, object: Object, attributes: Attributes, handle: Handle, jobs: &mut VecDeque<Job>) {
        self.objects.know(object, Some(handle));
        match object {
            Object::Directory(index) => jobs.push_back(list(index, handle)),
            Object::File(index) => drop(self.sizes.insert(index, attributes.bytes)),
            Object::Link(_) => {}
        }
    }
}

impl Worker for Look<'_> {
    type Job = Job;

    fn call(&mut self, pool: &mut Pool, tag: u64, job: Job) -> Option<Place> {
        match job {
            Job::List { handle, cookie, verifier, .. } => {
                let directory = &handle;
                pool.call(tag, &Call::Readdirplus { directory, cookie, verifier, bytes: PAGE_BYTES })
            }
            Job::Find { object, directory } => {
                let name = self.objects.population.place(object).1;
                pool.call(tag, &Call::Lookup { directory: &directory, name: name.as_bytes() })
            }
        }
    }

    fn answered(
        &mut self,
        job: Job,
        answer: Result<&[u8], Failure>,
        jobs: &mut VecDeque<Job>,
    ) -> Result<(), String> {
        let done = match job {
            Job::List { directory, handle, .. } => {
                answer.and_then(|body| self.page(directory, handle, body, jobs))
            }
            Job::Find { object, directory } => match answer.and_then(answers::looked_up) {
                Ok((handle, Some(attributes))) if form(object) == attributes.form => {
                    self.found(object, attributes, handle, jobs);
                    Ok(())
                }
                Ok((_, attributes)) => {
                    let form = attributes.map_or(Form::Other, |attributes| attributes.form);
                    let name = self.objects.population.place(object).1.into_bytes();
                    self.surplus.push(Surplus { directory, name, form });
                    Ok(())
                }
                Err(failure) => Err(failure),
            },
        };
        done.map_err(|failure| format!("{}: {failure}", self.what(job)))
    }

    fn what(&self, job: Job) -> String {
        match job {
            Job::List { directory, .. } => {
                format!(
                    "reading the directory {:?}",
                    self.objects.population.path(Object::Directory(directory))
                )
            }
            Job::Find { object, .. } => format!("looking for {:?}", self.objects.population.path(object)),
        }
    }
}

fn list(directory: usize, handle: Handle) -> Job {
    Job::List { directory, handle, cookie: 0, verifier: [0; 8] }
}

pub(crate) fn form(object: Object) -> Form {
    match object {
        Object::Directory(_) => Form::Directory,
        Object::File(_) => Form::File,
        Object::Link(_) => Form::Link,
    }
}
