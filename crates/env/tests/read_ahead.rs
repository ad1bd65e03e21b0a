//! A read of what the kernel forgot has the device read what was asked for, and nothing ahead of
//! it. Alone in its process, whose counters it reads.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "looks at the disk behind the door's back"
)]

use std::io;
use std::path::PathBuf;

use env::real::{RealOptions, run};
use env::{Class, Env, File, Mesh, OpenOptions};

const PAGE: u64 = 4096;
const PAGES: u64 = 4096;

/// Bytes that this process had its devices read.
fn read_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap()
}

#[test]
fn a_read_of_a_page_reads_a_page() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("read-ahead");
    let options = RealOptions { signals: false, ..RealOptions::default() };
    let at = path.clone();
    run(options, move |env: Env, _: Mesh<()>| {
        let path = at.clone();
        async move {
            let file = File::open(&env, &path, OpenOptions::READ_WRITE).await?;
            file.write_all_at(vec![7; (PAGES * PAGE) as usize], 0).await.0?;
            file.sync_all().await?;
            file.forget_pages().await?;
            // from the start, one after the other, and here and there: all that makes a kernel read
            // ahead
            let pages = [0, 1, 2, 3, 4, 5, 6, 7, 2048, 2049, 2050, 1000, 3000, 17];
            for (done, page) in pages.into_iter().enumerate() {
                let before = read_bytes();
                let reading = file.clone();
                let read = async move {
                    let len = PAGE as usize;
                    reading.read_exact_at(Vec::new(), page * PAGE, len).await.0
                };
                env.spawn_task(Class::Statement, read).await?;
                let read = read_bytes() - before;
                assert_eq!(read, PAGE, "read {done}, of page {page}");
            }
            Ok::<(), io::Error>(())
        }
    })
    .unwrap();
    let _ = std::fs::remove_file(&path);
}
