//! What the real make does to a disk, recorded, and the images that a power cut may leave of it.
#![allow(clippy::disallowed_methods, reason = "looks at the disk behind the door's back")]

use std::io;
use std::path::{Path, PathBuf};

use env::real::{RealOptions, run};
use env::{Env, File, Mesh, OpenOptions, Recorder, Recording, Rng};

fn record(
    name: &str,
    main: impl AsyncFn(&Env, &Path) -> io::Result<()> + Send + Sync + 'static,
) -> (PathBuf, Recording) {
    let dir = std::env::temp_dir().join(format!("helenus-rec-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("old"), b"before").unwrap();
    let recorder = Recorder::new(&[&dir]).unwrap();
    let options = RealOptions {
        signals: false,
        ring_entries: 64,
        recorder: Some(recorder.clone()),
        ..RealOptions::default()
    };
    let (d, main) = (dir.clone(), std::sync::Arc::new(main));
    run(options, move |env: Env, _: Mesh<()>| {
        let (d, main) = (d.clone(), main.clone());
        async move { main(&env, &d).await }
    })
    .unwrap();
    (dir, recorder.recording())
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
    std::fs::remove_dir_all(&target).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}
