//! What the real make does to a disk, recorded, and the images that a power cut may leave of it.
#![allow(clippy::disallowed_methods, reason = "looks at the disk behind the door's back")]

use std::io;
use std::path::{Path, PathBuf};

use env::real::{RealOptions, run};
use env::{Entry, Env, File, Mesh, OpenOptions, RecordedOp, Recorder, Recording, Rng};

fn record(
    name: &str,
    main: impl AsyncFn(&Env, &Path) -> io::Result<()> + Send + Sync + 'static,
) -> (PathBuf, Recording) {
    let dir = std::env::temp_dir().join(format!("helenus-rec-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("old"), b"before").unwrap();
    let recorder = Recorder::new(&[&dir]).unwrap();
    let recording = go_on(&dir, &recorder, main);
    (dir, recording)
}

fn go_on(
    dir: &Path,
    recorder: &Recorder,
    main: impl AsyncFn(&Env, &Path) -> io::Result<()> + Send + Sync + 'static,
) -> Recording {
    let options = RealOptions {
        signals: false,
        ring_entries: 64,
        recorder: Some(recorder.clone()),
        ..RealOptions::default()
    };
    let (d, main) = (dir.to_path_buf(), std::sync::Arc::new(main));
    run(options, move |env: Env, _: Mesh<()>| {
        let (d, main) = (d.clone(), main.clone());
        async move { main(&env, &d).await }
    })
    .unwrap();
    recorder.recording()
}

/// The files of an image below the recorded directory.
fn content(image: &env::DiskModel, dir: &Path, name: &str) -> Option<Vec<u8>> {
    let wanted = dir.join(name);
    let files = image.files().into_iter();
    files.filter(|(path, _)| Path::new(path) == wanted).map(|(_, bytes)| bytes).next()
}

#[test]
fn atomic_writes_are_atomic_at_every_cut() {
    let (dir, recording) = record("atomic", async |env, dir| {
        env.write_file_atomically(dir.join("state"), vec![1; 1500]).await?;
        env.write_file_atomically(dir.join("state"), vec![2; 2500]).await
    });
    let (mut absent, mut first, mut second) = (0, 0, 0);
    for cut in recording.cuts() {
        for seed in 0..30 {
            let image = recording.crash_image(cut, &Rng::new(seed)).unwrap();
            assert_eq!(content(&image, &dir, "old").as_deref(), Some(&b"before"[..]));
            match content(&image, &dir, "state") {
                None => absent += 1,
                Some(bytes) if bytes == vec![1; 1500] => first += 1,
                Some(bytes) if bytes == vec![2; 2500] => second += 1,
                Some(bytes) => panic!("cut {cut} seed {seed}: {} bytes", bytes.len()),
            }
        }
    }
    assert!(absent > 0 && first > 0 && second > 0);
    // After the last sync of the directory nothing is in doubt.
    let last = recording.crash_image(recording.entries().len(), &Rng::new(1)).unwrap();
    assert_eq!(content(&last, &dir, "state"), Some(vec![2; 2500]));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn appends_survive_up_to_the_last_sync() {
    let (dir, recording) = record("append", async |env, dir| {
        let file = File::open(env, dir.join("log"), OpenOptions::CREATE_NEW).await?;
        env.sync_dir(dir).await?;
        for i in 1..=10u8 {
            file.write_all_at(vec![i; 700], u64::from(i - 1) * 700).await.0?;
            if i % 2 == 0 {
                file.sync_data().await?;
            }
        }
        env.remove_file(dir.join("old")).await
    });
    let end = recording.entries().len();
    let (mut torn, mut resurrected) = (0, 0);
    for seed in 0..100 {
        let image = recording.crash_image(end, &Rng::new(seed)).unwrap();
        let log = content(&image, &dir, "log").unwrap();
        assert_eq!(log.len(), 7000);
        resurrected += usize::from(content(&image, &dir, "old").is_some());
        // Without the removal, the last sync and the tenth write: the ninth stands unsynced.
        let early = recording.crash_image(end - 6, &Rng::new(seed)).unwrap();
        let log = content(&early, &dir, "log").unwrap();
        let tail = log.iter().skip(5600).filter(|b| **b == 9).count();
        torn += usize::from(tail > 0 && tail < 700);
        assert!(log[..5600].iter().enumerate().all(|(at, b)| *b as usize == at / 700 + 1));
    }
    assert!(resurrected > 10 && resurrected < 90, "{resurrected}");
    assert!(torn > 5, "{torn}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn images_are_written_out_and_kills_lose_nothing() {
    let (dir, recording) = record("out", async |env, dir| {
        env.create_dir_all(dir.join("a/b")).await?;
        let file = File::open(env, dir.join("a/b/f"), OpenOptions::READ_WRITE).await?;
        file.write_all_at(vec![3; 10], 0).await.0?;
        file.set_len(4).await?;
        env.hard_link(dir.join("a/b/f"), dir.join("a/g")).await?;
        env.rename(dir.join("a/b/f"), dir.join("a/h")).await
    });
    let image = recording.kill_image(recording.entries().len()).unwrap();
    let target = dir.with_extension("image");
    let _ = std::fs::remove_dir_all(&target);
    assert!(image.write_tree_to(&dir, &target).unwrap());
    assert_eq!(std::fs::read(target.join("a/h")).unwrap(), [3; 4]);
    assert_eq!(std::fs::read(target.join("a/g")).unwrap(), [3; 4]);
    assert_eq!(std::fs::read(target.join("old")).unwrap(), b"before");
    assert!(!target.join("a/b/f").exists());
    assert!(!image.write_tree_to(Path::new("/nowhere"), &target).unwrap());
    let moved = recording.moved(&dir, &target);
    let image = moved.kill_image(moved.entries().len()).unwrap();
    assert_eq!(content(&image, &target, "a/h"), Some(vec![3; 4]));
    assert_eq!(content(&image, &target, "old").as_deref(), Some(&b"before"[..]));
    assert_eq!(content(&image, &dir, "old"), None);
    std::fs::remove_dir_all(&target).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The numbers of the operations that are so.
fn operations(recording: &Recording, wanted: impl Fn(&RecordedOp) -> bool) -> Vec<u64> {
    let wanted = |entry: &Entry| match entry {
        Entry::Begin { id, op } if wanted(op) => Some(*id),
        _ => None,
    };
    recording.entries().iter().filter_map(wanted).collect()
}

#[test]
fn a_sync_left_out_shows_in_the_images() {
    let (dir, recording) = record("without", async |env, dir| {
        env.write_file_atomically(dir.join("state"), vec![7; 1500]).await
    });
    let end = recording.entries().len();
    let content_of = |recording: &Recording, seed| {
        content(&recording.crash_image(end, &Rng::new(seed)).unwrap(), &dir, "state")
    };
    assert!((0..50).all(|seed| content_of(&recording, seed) == Some(vec![7; 1500])));
    let syncs = operations(&recording, |op| matches!(op, RecordedOp::Sync { .. }));
    let torn = recording.clone().without(syncs.into_iter().collect());
    assert!((0..50).any(|seed| content_of(&torn, seed).is_some_and(|c| c != vec![7; 1500])));
    assert!((0..50).all(|seed| content_of(&torn, seed).is_some()));
    let syncs = operations(&recording, |op| matches!(op, RecordedOp::SyncDir { .. }));
    let nameless = recording.clone().without(syncs.into_iter().collect());
    assert!((0..50).any(|seed| content_of(&nameless, seed).is_none()));
    // A player that goes on gives the images that a replay from the beginning gives.
    let mut player = recording.player().unwrap();
    for cut in recording.cuts() {
        player.play_to(cut);
        let replayed = recording.crash_image(cut, &Rng::new(3)).unwrap();
        assert_eq!(player.crash_image(&Rng::new(3)).files(), replayed.files());
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_kill_makes_nothing_durable() {
    let (dir, recording) = record("kill", async |env, dir| {
        let file = File::open(env, dir.join("log"), OpenOptions::CREATE_NEW).await?;
        env.sync_dir(dir).await?;
        file.write_all_at(vec![1; 700], 0).await.0
    });
    let end = recording.entries().len();
    let next = Recorder::after_kill(&recording, end);
    assert!(next.moment().place == end && next.moment().time >= recording.time(end - 1));
    let after = go_on(&dir, &next, async |env, dir| {
        let file = File::open(env, dir.join("log"), OpenOptions::READ).await?;
        file.sync_all().await
    });
    let content_of =
        |cut, seed| content(&after.crash_image(cut, &Rng::new(seed)).unwrap(), &dir, "log");
    assert_eq!(content(&after.kill_image(end).unwrap(), &dir, "log"), Some(vec![1; 700]));
    // Opened, and not yet synced.
    assert!((0..50).any(|seed| content_of(end + 2, seed) != Some(vec![1; 700])));
    let last = after.entries().len();
    assert!(last > end + 2);
    assert!((0..50).all(|seed| content_of(last, seed) == Some(vec![1; 700])));
    std::fs::remove_dir_all(&dir).unwrap();
}
