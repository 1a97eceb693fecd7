//! One call at a time, waiting for its answer: for finding a server, mounting, and what is done once.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nfs3_types::portmap::{IPPROTO_TCP, PMAP_PORT};

use crate::call::Call;
use crate::connection::first_xid;
use crate::export::Export;
use crate::failure::{Failure, mount_name};
use crate::handle::Handle;
use crate::record::Records;
use crate::rpc::{Credentials, MOUNT, NFS, PORTMAP, Program, put_call, result_of, xid_of};
use crate::socket;
use crate::xdr::{Words, put_opaque, put_u32};

const READ_BYTES: usize = 64 << 10;
const GETPORT: u32 = 3;
const MNT: u32 = 1;
const UMNT: u32 = 3;
/// Answers to others' calls before ours, at most: to what was given up before.
const OTHERS: usize = 64;

pub struct Client {
    stream: TcpStream,
    who: Credentials,
    xid: u32,
    records: Records,
    call: Vec<u8>,
}

impl Client {
    /// Waits so long at most, for the connection and then for each answer.
    ///
    /// # Errors
    /// Nobody is there.
    pub fn connect(address: SocketAddr, who: &Credentials, patience: Duration) -> std::io::Result<Client> {
        let stream = socket::connect(address, patience)?;
        Ok(Client {
            stream,
            who: who.clone(),
            xid: first_xid(),
            records: Records::default(),
            call: Vec::new(),
        })
    }

    /// Makes a call of NFS and reads its answer, by one of [`crate::answers`].
    ///
    /// # Errors
    /// Why there is no good answer.
    pub fn call<T>(
        &mut self,
        call: &Call<'_>,
        read: impl FnOnce(&[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.begin();
        call.put(&mut self.call, self.xid, &self.who);
        read(self.exchange()?)
    }

    fn ask(&mut self, what: (Program, u32), arguments: impl FnOnce(&mut Vec<u8>)) -> Result<&[u8], Failure> {
        self.begin();
        put_call(&mut self.call, self.xid, what, &self.who, arguments);
        self.exchange()
    }

    fn begin(&mut self) {
        self.xid = self.xid.wrapping_add(1);
        self.call.clear();
    }

    fn exchange(&mut self) -> Result<&[u8], Failure> {
        self.stream.write_all(&self.call).map_err(why)?;
        let mut others = 0;
        loop {
            // Looked at before it is lent: the borrow of what is given back would otherwise last through the loop.
            let record = self.records.next_record()?.map(<[u8]>::to_vec);
            match record {
                Some(record) if xid_of(&record)? == self.xid => {
                    self.call = record;
                    return result_of(&self.call);
                }
                Some(_) if others < OTHERS => others += 1,
                Some(_) => return Err(Failure::Malformed("it answers other calls")),
                None => {
                    let bytes = self.stream.read(self.records.room(READ_BYTES)).map_err(why)?;
                    if bytes == 0 {
                        return Err(Failure::Closed);
                    }
                    self.records.came(bytes);
                }
            }
        }
    }
}

fn why(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::Timeout,
        _ => Failure::Closed,
    }
}

/// The port of NFS, unless the port mapper knows another (IANA).
const PORT: u16 = 2049;

/// An export that was mounted: where its server is, and its directory.
pub struct Mounted {
    pub address: SocketAddr,
    pub root: Handle,
    pub client: Client,
    mount: SocketAddr,
    path: String,
    who: Credentials,
    patience: Duration,
}

impl Mounted {
    /// Finds the server's ports where they are not named, mounts and connects.
    ///
    /// # Errors
    /// One line: what was asked of whom, what came instead, and what can be done.
    pub fn new(export: &Export, who: &Credentials, patience: Duration) -> Result<Mounted, String> {
        let Export { text, path, .. } = export;
        let unknown = |error| format!("{text}: {error}");
        let mut address = export.at(export.port).map_err(unknown)?;
        let mount = match export.mount_port {
            Some(port) => export.at(port).map_err(unknown)?,
            None => {
                let mapper = export.at(PMAP_PORT).map_err(unknown)?;
                let port = port_of(mapper, MOUNT, who, patience).map_err(|failure| {
                    let what =
                        format!("its mount service is unknown: the port mapper at {mapper}: {failure}");
                    format!("{text}: {what}; start the server, or name the port: ?mountport=N")
                })?;
                if export.port == PORT
                    && let Ok(port) = port_of(mapper, NFS, who, patience)
                {
                    address.set_port(port);
                }
                SocketAddr::new(mapper.ip(), port)
            }
        };
        let root = mounted(mount, path, who, patience).map_err(|failure| {
            format!("{text}: mounting {path} by {mount}: {failure}; is it exported to this host?")
        })?;
        let client = Client::connect(address, who, patience)
            .map_err(|error| format!("{text}: {address}: {error}; start the server first"))?;
        let (path, who) = (path.clone(), who.clone());
        let mut made = Mounted { address, root, client, mount, path, who, patience };
        made.client
            .call(&Call::Null, |_| Ok(()))
            .map_err(|failure| format!("{text}: {address}: {failure}; is it a server of NFS 3?"))?;
        Ok(made)
    }
}

impl Drop for Mounted {
    /// Tells the server, which lists who has mounted what; nothing hangs on its answer.
    fn drop(&mut self) {
        let patience = self.patience.min(Duration::from_secs(1));
        if let Ok(mut client) = Client::connect(self.mount, &self.who, patience) {
            let _ = client.ask((MOUNT, UMNT), |out| put_opaque(out, self.path.as_bytes()));
        }
    }
}

/// On which port a service listens (RFC 1833, section 3).
fn port_of(
    mapper: SocketAddr,
    program: Program,
    who: &Credentials,
    patience: Duration,
) -> Result<u16, Failure> {
    let mut client = Client::connect(mapper, who, patience).map_err(|_| Failure::Connect)?;
    let body = client.ask((PORTMAP, GETPORT), |out| {
        for word in [program.number, program.version, IPPROTO_TCP, 0] {
            put_u32(out, word);
        }
    })?;
    port(body)
}

fn port(body: &[u8]) -> Result<u16, Failure> {
    let mut words = Words::new(body);
    let found = words.u32()?;
    words.end()?;
    match u16::try_from(found) {
        Ok(0) => Err(Failure::Status("PROG_UNAVAIL")),
        Ok(port) => Ok(port),
        Err(_) => Err(Failure::Malformed("a port is above 65535")),
    }
}

fn mounted(at: SocketAddr, export: &str, who: &Credentials, patience: Duration) -> Result<Handle, Failure> {
    let mut client = Client::connect(at, who, patience).map_err(|_| Failure::Connect)?;
    root(client.ask((MOUNT, MNT), |out| put_opaque(out, export.as_bytes()))?)
}

/// The handle of an answer to MNT; the ways to say who asks, behind it, are not looked at.
fn root(body: &[u8]) -> Result<Handle, Failure> {
    let mut words = Words::new(body);
    match words.u32()? {
        0 => {
            let bytes = words.opaque(nfs3_types::mount::FHSIZE3)?;
            Handle::new(bytes).ok_or(Failure::Malformed("a handle is too long"))
        }
        status => Err(mount_name(status)
            .map_or(Failure::Malformed("its status is none of the mount protocol"), Failure::Status)),
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
