//! Who waits for the disk, and what is said of it: a flush under way lets reads pass.

use std::io;
use std::time::Duration;

use env::sim::{Fault, World, WorldOptions};
use env::{Class, Env, File, IO_WINDOWS, IoFlow, IoKind, IoPattern, Mesh, OpenOptions};

/// Bytes of a buffer of the flush, and how many there are.
const BUFFER: usize = 16 << 20;
const BUFFERS: u64 = 4;
const READS: u64 = 200;
/// The longest that a piece of a write keeps the simulated disk, its tail included, and a bit.
const PIECE: Duration = Duration::from_millis(7);

fn flow(pattern: &IoPattern, class: Class, kind: IoKind) -> IoFlow {
    let flows = pattern.flows();
    let found = flows.iter().find(|flow| flow.class == class && flow.kind == kind);
    found.map(|flow| (*flow).clone()).expect("there was some")
}

/// The last minute of a shard.
fn minute(env: &Env) -> IoPattern {
    let last = env.io_window() + 1;
    env.io_pattern(last.saturating_sub(IO_WINDOWS as u64)..last)
}

/// A flush of many buffers at once while 4 KiB are read every now and then, on a disk that takes
/// one operation at a time: the longest time that a read waited for its turn, and what the flush
/// had written when the reads were done.
fn reads_beside_a_flush(seed: u64, bug: Option<&'static str>) -> (Duration, u64) {
    let options = WorldOptions { io_depth: 1, ..WorldOptions::default() };
    let world = World::new(seed, options);
    if let Some(bug) = bug {
        world.plant(bug);
    }
    let node = world.node("10.0.0.1".parse().unwrap());
    let seen = std::rc::Rc::new(std::cell::Cell::new((Duration::ZERO, 0)));
    let report = seen.clone();
    world.start(node, 1, move |env: Env, _: Mesh<()>| {
        let report = report.clone();
        async move {
            let table = File::open(&env, "/table", OpenOptions::READ_WRITE).await?;
            table.write_all_at(vec![7; 1 << 20], 0).await.0?;
            for at in 0..BUFFERS {
                let flush = env.clone();
                env.spawn(Class::Flush, async move {
                    let path = format!("/flushed-{at}");
                    let file = File::open(&flush, path, OpenOptions::READ_WRITE).await.unwrap();
                    file.write_all_at(vec![1; BUFFER], 0).await.0.unwrap();
                    file.sync_all().await.unwrap();
                });
            }
            let reader = env.clone();
            let reads = env.spawn_task(Class::Statement, async move {
                for at in 0..READS {
                    reader.sleep(Duration::from_micros(500)).await;
                    table.read_exact_at(Vec::new(), at * 4096, 4096).await.0?;
                }
                Ok::<(), io::Error>(())
            });
            reads.await?;
            let pattern = minute(&env);
            let reads = flow(&pattern, Class::Statement, IoKind::Read);
            assert_eq!((reads.ops, reads.bytes), (READS, READS * 4096));
            let written = flow(&pattern, Class::Flush, IoKind::Write).bytes;
            report.set((Duration::from_nanos(reads.queue.longest_ns), written));
            Ok::<(), io::Error>(())
        }
    });
    world.run_until(|| !world.is_up(node), Duration::from_secs(600)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "seed {seed}: {:?}", world.exits(node));
    seen.get()
}

#[test]
fn a_read_waits_for_one_piece_of_a_flush_at_most() {
    for seed in 0..10 {
        let (waited, written) = reads_beside_a_flush(seed, None);
        assert!(waited <= PIECE, "seed {seed}: a read waited {waited:?}");
        assert!(written > 0, "seed {seed}: the flush stood still");
    }
}

#[test]
fn without_pieces_or_without_classes_reads_wait_longer() {
    for bug in ["disk_whole_writes", "disk_without_classes"] {
        let worst = (0..10).map(|seed| reads_beside_a_flush(seed, Some(bug)).0).max();
        assert!(worst > Some(PIECE), "{bug}: a read waited {worst:?} at most");
    }
}

/// The bytes are lost with the power though a sync after the failed stretch succeeds: who goes on
/// after the failure loses what it wrote.
#[test]
fn no_later_sync_answers_for_a_stretch_that_failed() {
    let mut lost = 0;
    for seed in 0..20 {
        let world = World::new(seed, WorldOptions::default());
        let node = world.node("10.0.0.1".parse().unwrap());
        world.start(node, 1, |env: Env, _: Mesh<()>| async move {
            let file = File::open(&env, "/f", OpenOptions::READ_WRITE).await?;
            env.sync_dir("/").await?;
            file.write_all_at(vec![1; 4096], 0).await.0?;
            env.mark("written");
            env.sleep(Duration::from_secs(1)).await;
            assert!(file.write_back(0, 4096).await.is_err());
            env.mark("failed");
            env.sleep(Duration::from_secs(1)).await;
            file.sync_all().await?;
            env.mark("synced");
            env.terminated().await;
            Ok::<(), io::Error>(())
        });
        let reached = |name: &'static str| {
            let there = || world.marks().contains_key(name);
            world.run_until(there, Duration::from_secs(10)).unwrap();
        };
        reached("written");
        world.set_fault(Fault::SyncError { node, one_in: 1 });
        reached("failed");
        world.set_fault(Fault::SyncError { node, one_in: 0 });
        reached("synced");
        world.power_cut(node);
        let path = std::path::Path::new("/f");
        let kept = world.disk(node, |disk| disk.read_file(path)).flatten() == Some(vec![1; 4096]);
        lost += u32::from(!kept);
    }
    assert!(lost > 0, "the disk kept all of what it said it had not taken");
}
