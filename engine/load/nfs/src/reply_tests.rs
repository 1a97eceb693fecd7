//! Answers as `nfs3_types` writes them are read as they are meant; those and any bytes, changed at will, never end the program.

use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{List, Opaque, Pack, Void};
use proptest::prelude::*;

use super::*;

fn packed(answer: &impl Pack) -> Vec<u8> {
    let mut out = Vec::new();
    answer.pack(&mut out).unwrap();
    out
}

fn some(bytes: u64) -> fattr3 {
    let time = nfstime3 { seconds: 1, nseconds: 2 };
    fattr3 {
        type_: ftype3::NF3REG,
        mode: 0o644,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: bytes,
        used: 4096,
        rdev: specdata3::default(),
        fsid: 5,
        fileid: 6,
        atime: time,
        mtime: time,
        ctime: time,
    }
}

fn wcc() -> wcc_data {
    let time = nfstime3::default();
    wcc_data {
        before: Nfs3Option::Some(wcc_attr { size: 1, mtime: time, ctime: time }),
        after: Nfs3Option::Some(some(2)),
    }
}

fn fh() -> nfs_fh3 {
    nfs_fh3 { data: Opaque::borrowed(b"handle") }
}

/// One good answer of each reader.
fn answers() -> Vec<Vec<u8>> {
    let here = || Nfs3Option::Some(some(1234));
    let (size, link) = (GETATTR3resok { obj_attributes: some(1234) }, Opaque::borrowed(b"../far"));
    let entry = |name: &'static [u8], cookie| entryplus3 {
        fileid: 1,
        name: name.into(),
        cookie,
        name_attributes: here(),
        name_handle: Nfs3Option::Some(fh()),
    };
    let plain = |name: &'static [u8], cookie| entry3 { fileid: 1, name: name.into(), cookie };
    let cookieverf = cookieverf3(*b"verifier");
    let time_delta = nfstime3::default();
    vec![
        packed(&GETATTR3res::Ok(size)),
        packed(&SETATTR3res::Ok(SETATTR3resok { obj_wcc: wcc() })),
        packed(&RENAME3res::Ok(RENAME3resok { fromdir_wcc: wcc(), todir_wcc: wcc_data::default() })),
        packed(&COMMIT3res::Ok(COMMIT3resok { file_wcc: wcc(), verf: writeverf3::default() })),
        packed(&LOOKUP3res::Ok(LOOKUP3resok {
            object: fh(),
            obj_attributes: here(),
            dir_attributes: Nfs3Option::None,
        })),
        packed(&ACCESS3res::Ok(ACCESS3resok { obj_attributes: here(), access: 31 })),
        packed(&READLINK3res::Ok(READLINK3resok { symlink_attributes: here(), data: nfspath3(link) })),
        packed(&READ3res::Ok(READ3resok {
            file_attributes: here(),
            count: 5,
            eof: true,
            data: Opaque::borrowed(b"etude"),
        })),
        packed(&WRITE3res::Ok(WRITE3resok {
            file_wcc: wcc(),
            count: 77,
            committed: stable_how::FILE_SYNC,
            verf: writeverf3::default(),
        })),
        packed(&CREATE3res::Ok(CREATE3resok {
            obj: Nfs3Option::Some(fh()),
            obj_attributes: here(),
            dir_wcc: wcc(),
        })),
        packed(&READDIR3res::Ok(READDIR3resok {
            dir_attributes: here(),
            cookieverf,
            reply: dirlist3 { entries: List(vec![plain(b"a", 3), plain(b"bcdef", 9)]), eof: false },
        })),
        packed(&READDIRPLUS3res::Ok(READDIRPLUS3resok {
            dir_attributes: here(),
            cookieverf,
            reply: dirlistplus3 { entries: List(vec![entry(b"a", 3), entry(b"bcdef", 9)]), eof: true },
        })),
        packed(&FSSTAT3res::Ok(FSSTAT3resok {
            obj_attributes: here(),
            tbytes: 1,
            fbytes: 2,
            abytes: 3,
            tfiles: 4,
            ffiles: 5,
            afiles: 6,
            invarsec: 7,
        })),
        packed(&FSINFO3res::Ok(FSINFO3resok {
            obj_attributes: here(),
            rtmax: 11,
            rtpref: 12,
            rtmult: 13,
            wtmax: 14,
            wtpref: 15,
            wtmult: 16,
            dtpref: 17,
            maxfilesize: 18,
            time_delta,
            properties: 0,
        })),
    ]
}

/// All readers, in the order of `answers`.
fn read(which: usize, body: &[u8]) -> Result<(), Failure> {
    match which {
        0 => attributes(body).map(drop),
        1 => changed(body),
        2 => renamed(body),
        3 => committed(body),
        4 => looked_up(body).map(drop),
        5 => access(body).map(drop),
        6 => target(body).map(drop),
        7 => data(body).map(drop),
        8 => written(body).map(drop),
        9 => created(body).map(drop),
        10 => entries(body, false, |_| ()).map(drop),
        11 => entries(body, true, |_| ()).map(drop),
        12 => space(body).map(drop),
        _ => info(body).map(drop),
    }
}

#[test]
fn answers_are_read_as_they_were_meant() {
    let all = answers();
    let here = Attributes { form: Form::File, bytes: 1234 };
    assert_eq!(attributes(&all[0]), Ok(here));
    assert_eq!(looked_up(&all[4]), Ok((Handle::new(b"handle").unwrap(), Some(here))));
    assert_eq!(access(&all[5]), Ok(31));
    assert_eq!(target(&all[6]), Ok(&b"../far"[..]));
    assert_eq!(data(&all[7]), Ok((&b"etude"[..], true)));
    assert_eq!(written(&all[8]), Ok(77));
    assert_eq!(created(&all[9]), Ok(Handle::new(b"handle")));
    let mut names = Vec::new();
    let page = entries(&all[11], true, |entry| {
        names.push((entry.name.to_vec(), entry.attributes, entry.handle));
    });
    let handle = Handle::new(b"handle");
    assert_eq!(page, Ok(Entries { verifier: *b"verifier", cookie: 9, count: 2, last: true }));
    assert_eq!(names, [(b"a".to_vec(), Some(here), handle), (b"bcdef".to_vec(), Some(here), handle)]);
    assert_eq!(entries(&all[10], false, |_| ()).map(|page| (page.cookie, page.last)), Ok((9, false)));
    assert_eq!(space(&all[12]), Ok(Space { all_bytes: 1, free_bytes: 3, all_files: 4, free_files: 6 }));
    assert_eq!(info(&all[13]), Ok(Info { most_read_bytes: 11, most_write_bytes: 14 }));
}

#[test]
fn every_answer_is_read_to_its_end_and_no_further() {
    for (which, body) in answers().iter().enumerate() {
        assert_eq!(read(which, body), Ok(()), "{which}");
        for cut in 0..body.len() {
            assert!(matches!(read(which, &body[..cut]), Err(Failure::Malformed(_))), "{which} cut at {cut}");
        }
        let longer = [body.as_slice(), &[0; 4]].concat();
        assert!(matches!(read(which, &longer), Err(Failure::Malformed(_))), "{which}");
    }
}

#[test]
fn a_status_is_told_by_its_name_whatever_stands_behind_it() {
    let jukebox = packed(&GETATTR3res::Err((nfsstat3::NFS3ERR_JUKEBOX, Void)));
    for which in 0..answers().len() {
        assert_eq!(read(which, &jukebox), Err(Failure::Status("NFS3ERR_JUKEBOX")));
        assert!(matches!(read(which, &[0, 0, 0, 3]), Err(Failure::Malformed(_))));
    }
}

proptest! {
    #[test]
    fn changed_answers_and_any_bytes_are_read_or_refused(
        which in 0..14_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        any in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut body = answers()[which].clone();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let _ = read(which, &body);
        let _ = read(which, &any);
        let behind = [&[0; 4], any.as_slice()].concat();
        let _ = read(which, &behind);
    }
}
