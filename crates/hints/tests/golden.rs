//! Files that the classes of Cassandra 5.0.9 wrote (`conformance/hints`), and what they read of
//! them: plain and compressed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use env::sim::{World, WorldOptions};
use env::{Env, File, OpenOptions};
use hints::{Compression, Hint, Hints, Options, SyncMode};
use types::Uuid;

const PLAIN: &[u8] =
    include_bytes!("../testdata/5c3b3720-e5dd-41f1-9a15-1b96078e4459-4100000000001-2.hints");
const LZ4: &[u8] =
    include_bytes!("../testdata/5c3b3720-e5dd-41f1-9a15-1b96078e4459-4100000000002-2.hints");
const PLAIN_CRC: &str =
    include_str!("../testdata/5c3b3720-e5dd-41f1-9a15-1b96078e4459-4100000000001-2.crc32");
const HINTS: &str = include_str!("../testdata/hints.txt");
const HOST: Uuid = Uuid(0x5c3b3720_e5dd_41f1_9a15_1b96078e4459);

/// Time, `gc_grace_seconds` and mutation of each hint, by file.
fn expected() -> BTreeMap<String, Vec<(i64, i32, Vec<u8>)>> {
    let mut files: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in HINTS.lines() {
        let [name, created, gc_grace, mutation] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let mutation = types::hex::from_hex(mutation).expect("hexadecimal");
        let hint = (created.parse().expect("ms"), gc_grace.parse().expect("s"), mutation);
        files.entry(name.to_owned()).or_default().push(hint);
    }
    files
}

fn options(compression: Option<&str>) -> Options {
    let compression =
        compression.map(|class| Compression::new(class, BTreeMap::new()).expect("a class"));
    Options {
        directory: "/hints".into(),
        mode: SyncMode::Batch,
        compression,
        file_bytes_max: 1 << 20,
        waiting_bytes_max: 1 << 20,
    }
}

async fn put(env: &Env, name: &str, bytes: &[u8]) {
    env.create_dir_all("/hints").await.expect("a folder");
    let file = File::open(env, format!("/hints/{name}"), OpenOptions::CREATE_NEW).await;
    file.expect("a file").write_all_at(bytes.to_vec(), 0).await.0.expect("written");
}

async fn all(hints: &Hints) -> Vec<(i64, i32, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(file) = hints.first(HOST) {
        let mut reader = hints.read(&file).await.expect("opened");
        loop {
            let page = reader.page().await.expect("read");
            assert_eq!(page.damaged, 0);
            if page.hints.is_empty() {
                file.set_sent(page.next);
                break;
            }
            for hint in &page.hints {
                let hint = hint.hint();
                found.push((hint.created, hint.gc_grace, hint.mutation.to_vec()));
            }
        }
        assert!(hints.finish(&file).await.expect("removed"));
    }
    found
}

/// Whatever is done to a file, what is read of it are hints that were written, and the reader comes
/// to its end.
#[test]
fn what_is_broken_is_read_as_far_as_it_goes() {
    let written: Vec<_> = expected().into_values().flatten().collect();
    for seed in 0..600 {
        let written = written.clone();
        in_a_world(move |env| async move {
            let rng = env::Rng::new(seed);
            let (name, bytes) = match seed % 2 {
                0 => (expected().into_keys().next(), PLAIN),
                _ => (expected().into_keys().nth(1), LZ4),
            };
            let mut bytes = bytes.to_vec();
            for _ in 0..1 + rng.below(6) {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(4) {
                    0 => bytes.truncate(at.max(40)),
                    1 => bytes[at] = rng.next() as u8,
                    2 => bytes.insert(at, rng.next() as u8),
                    _ => bytes[at..].iter_mut().take(9).for_each(|byte| *byte = 0xff),
                }
            }
            put(&env, &name.expect("two files"), &bytes).await;
            let hints = Hints::start(&env, options(None), Box::new(|_, _| {})).await;
            let hints = hints.expect("started");
            let Some(file) = hints.first(HOST) else { return };
            let mut reader = hints.read(&file).await.expect("opened");
            loop {
                let page = reader.page().await.expect("read");
                if page.hints.is_empty() {
                    assert_eq!(page.next, file.len());
                    break;
                }
                for hint in &page.hints {
                    let hint = hint.hint();
                    let hint = (hint.created, hint.gc_grace, hint.mutation.to_vec());
                    assert!(written.contains(&hint));
                }
            }
        });
    }
}

fn in_a_world<F: Future<Output = ()> + 'static>(test: impl FnOnce(Env) -> F) {
    let world = World::new(1, WorldOptions::default());
    let env = world.client([10, 0, 0, 1].into());
    world.block_on(&env.clone(), std::time::Duration::from_secs(60), test(env)).expect("in time");
}

#[test]
fn what_cassandra_wrote_is_read() {
    in_a_world(|env| async move {
        let told = Rc::new(RefCell::new(Vec::new()));
        for (name, bytes) in expected().keys().zip([PLAIN, LZ4]) {
            put(&env, name, bytes).await;
        }
        let said = Rc::clone(&told);
        let tell =
            Box::new(move |_: metrics::Level, text: &str| said.borrow_mut().push(text.to_owned()));
        let hints = Hints::start(&env, options(None), tell).await.expect("started");
        let kept = hints.kept_for(HOST).expect("hints");
        assert_eq!(
            (kept.files, kept.oldest, kept.newest),
            (2, 4_100_000_000_001, 4_100_000_000_002)
        );
        let expected: Vec<_> = expected().into_values().flatten().collect();
        assert!(all(&hints).await == expected);
        assert!(env.read_dir("/hints").await.expect("a folder").is_empty());
        assert!(told.borrow().is_empty());
    });
}

/// Byte for byte what Cassandra makes of the same hints, but for the time in its header.
#[test]
fn what_is_written_is_what_cassandra_writes() {
    in_a_world(|env| async move {
        let hints = Hints::start(&env, options(None), Box::new(|_, _| {})).await.expect("started");
        let (_, all) = expected().into_iter().next().expect("two files");
        for (created, gc_grace, mutation) in &all {
            let hint = Hint { created: *created, gc_grace: *gc_grace, mutation };
            hints.add(HOST, &hint).durable().await.expect("kept");
        }
        hints.close().await;
        let file = hints.first(HOST).expect("a file");
        let mut descriptor = file.descriptor.clone();
        let ours = env.read_file(file.path(), 1 << 20).await.expect("read");
        let mut header = Vec::new();
        descriptor.write(&mut header);
        let rest = ours.strip_prefix(&header[..]).expect("its header");
        descriptor.timestamp = 4_100_000_000_001;
        let mut theirs = Vec::new();
        descriptor.write(&mut theirs);
        theirs.extend(rest);
        assert_eq!(theirs, PLAIN);
        assert_eq!(format!("{:x}", crc32fast::hash(&theirs)), PLAIN_CRC);
        let crc = file.path().with_extension("crc32");
        let crc = env.read_file(crc, 8).await.expect("a checksum");
        assert_eq!(crc, format!("{:x}", crc32fast::hash(&ours)).into_bytes());
    });
}

#[test]
fn what_is_compressed_is_read_again() {
    for class in ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor"] {
        in_a_world(move |env| async move {
            let start = || Hints::start(&env, options(Some(class)), Box::new(|_, _| {}));
            let hints = start().await.expect("started");
            let (_, mut expected) = expected().into_iter().next().expect("two files");
            let large = vec![5; 300 << 10];
            expected.push((1, 2, large));
            for (created, gc_grace, mutation) in &expected {
                drop(hints.add(HOST, &Hint { created: *created, gc_grace: *gc_grace, mutation }));
            }
            hints.close().await;
            let hints = start().await.expect("started again");
            assert!(hints.kept_for(HOST).expect("hints").bytes < 100 << 10);
            assert!(all(&hints).await == expected);
        });
    }
}

/// A damaged length costs the hint, not those behind it; a torn end of a file that was not closed
/// is nothing to speak of.
#[test]
fn what_is_damaged_is_passed_over() {
    in_a_world(|env| async move {
        let (name, expected) = expected().into_iter().next().expect("two files");
        let body = PLAIN.windows(8).position(|at| at == 4_100_000_000_005_i64.to_be_bytes());
        let body = body.expect("the sixth hint");
        for (damaged, is_torn) in [(body - 7, false), (body + 3, false), (PLAIN.len() - 5, true)] {
            let mut bytes = PLAIN.to_vec();
            if is_torn {
                bytes.truncate(damaged)
            } else {
                bytes[damaged] ^= 1
            };
            put(&env, &name, &bytes).await;
            let start = Hints::start(&env, options(None), Box::new(|_, _| {}));
            let hints = start.await.expect("started");
            let file = hints.first(HOST).expect("a file");
            let mut reader = hints.read(&file).await.expect("opened");
            let page = reader.page().await.expect("read");
            let end = reader.page().await.expect("read");
            assert!(end.hints.is_empty());
            assert_eq!(page.damaged + end.damaged > 0, !is_torn);
            let lost = if is_torn { 19 } else { 5 };
            let mut expected = expected.clone();
            expected.remove(lost);
            let found: Vec<_> = page.hints.iter().map(|hint| hint.hint().created).collect();
            let left: Vec<_> = expected.iter().map(|hint| hint.0).collect();
            assert_eq!(found, left);
            assert_eq!(hints.truncate(Some(HOST)).await.expect("removed"), 1);
        }
    });
}
