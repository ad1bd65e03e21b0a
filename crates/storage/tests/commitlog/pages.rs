//! What the kernel keeps of the log.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "looks at the disk behind the door's back"
)]

use std::error::Error;
use std::fs;

use env::real::{RealOptions, run};

use super::*;

/// Rows that fill some segments.
const SOME_ROWS: i32 = 100;
/// How long a helper may take to have the kernel forget.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that this thread had the device read.
fn read_bytes() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).expect("a number")
}

/// Did the device have to be asked for a part of the file?
fn was_forgotten(path: &Path) -> bool {
    let before = read_bytes();
    fs::read(path).expect("a file");
    read_bytes() > before
}

/// A log that nobody reads is not to put out of the page cache what somebody does.
#[test]
fn a_segment_that_is_synced_to_its_end_is_forgotten() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("log-pages");
    let _ = fs::remove_dir_all(&root);
    let at = root.clone();
    let options = RealOptions { signals: false, ..RealOptions::default() };
    let done = run(options, move |env, mesh| {
        let root = at.clone();
        async move {
            let log = LogSettings::default();
            let opened = open_in(&env, mesh, &root, log, SyncMode::Batch).await?;
            opened.node.begin_log().await?;
            let segments = fs::read_dir(root.join("commitlog"))?.map(|entry| Ok(entry?.path()));
            let segments = segments.collect::<std::io::Result<BTreeSet<_>>>()?;
            let first = segments.into_iter().find(|path| path.extension() == Some("log".as_ref()));
            let first = first.ok_or("no segment")?;
            for n in 0..SOME_ROWS {
                write(&opened.engine, n).await?;
            }
            env.timeout(PATIENCE, async {
                while !was_forgotten(&first) {
                    env.yield_now().await;
                }
            })
            .await?;
            Ok::<_, Box<dyn Error + Send + Sync>>(())
        }
    });
    done.expect("the kernel forgets it");
    let _ = fs::remove_dir_all(&root);
}
