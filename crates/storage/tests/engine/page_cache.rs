//! What the page cache is asked for: all that is read where it could hold that, and otherwise what
//! comes again. On a real disk, for a simulated one has no page cache.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "puts a folder on the disk, and away"
)]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use env::real::{RealOptions, run};
use env::{Env, File, Mesh, OpenOptions};
use storage::shards::Job;
use storage::{Engine, Options, StorageError};

use crate::engine::{is_there, options, start, table, write};

const KEYS: i32 = 100;

/// Bytes that this thread had devices read: the shard's, for it hands its reads over itself.
fn read_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").expect("Linux tells");
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).expect("a number")
}

/// Bytes read of the device for so many keys, of which a flush has just left all in the page cache;
/// and can this disk pass it by?
async fn asked(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    options: Options,
) -> Result<(u64, bool), StorageError> {
    let probe = options.data_directories[0].join("probe");
    let (engine, node) = start(&env, mesh, options, &BTreeMap::new()).await?;
    let node = node.expect("the only shard is the first");
    let table = table(0);
    for key in 0..KEYS {
        write(&engine, &table, key, 1000).await?;
    }
    assert!(node.flush(table.id).await?);
    let opened = File::open(&env, &probe, OpenOptions::READ_WRITE.direct()).await;
    let is_direct = opened.map_err(|e| StorageError::corrupt(&probe, e))?.is_direct();
    let before = read_bytes();
    for key in 0..KEYS {
        assert!(is_there(&engine, &table, key).await?);
    }
    Ok((read_bytes() - before, is_direct))
}

fn run_with(folder: &Path, page_cache_bytes: u64) -> (u64, bool) {
    let folder = folder.join(page_cache_bytes.to_string());
    let options = Options {
        data_directories: vec![folder.join("data")],
        commitlog_directory: folder.join("commitlog"),
        passes_page_cache: false,
        page_cache_bytes: Some(page_cache_bytes),
        ..options()
    };
    let seen = Arc::new(Mutex::new(None));
    let theirs = Arc::clone(&seen);
    let real = RealOptions { signals: false, ..RealOptions::default() };
    run(real, move |env, mesh| {
        let (options, theirs) = (options.clone(), Arc::clone(&theirs));
        async move {
            let asked = asked(env, mesh, options).await.map_err(io::Error::other)?;
            *theirs.lock().expect("nobody failed") = Some(asked);
            Ok::<_, io::Error>(())
        }
    })
    .expect("the engine works");
    let asked = seen.lock().expect("nobody failed").take();
    asked.expect("it was told")
}

#[test]
fn what_fits_goes_through_it_at_once() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("page-cache");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    assert_eq!(run_with(&folder, 64 << 20).0, 0);
    let (asked, is_direct) = run_with(&folder, 16 << 10);
    assert!(asked > 0 || !is_direct, "{asked}");
    let _ = std::fs::remove_dir_all(&folder);
}
