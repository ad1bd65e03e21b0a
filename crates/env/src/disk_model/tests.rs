//! Laws of the model.

use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

fn file(model: &mut DiskModel, path: &str) -> Ino {
    let (ino, op) = model.create(Path::new(path)).unwrap();
    model.name_ended(op);
    ino
}

fn write(model: &mut DiskModel, ino: Ino, offset: u64, byte: u8, len: usize) {
    let op = model.write(ino, offset, &vec![byte; len]).unwrap();
    model.ended(ino, op);
}

fn sync(model: &mut DiskModel, ino: Ino) {
    let began = model.sync_begins();
    model.sync_ended(ino, began, true);
}

fn sync_root(model: &mut DiskModel) {
    let began = model.sync_begins();
    model.dir_sync_ended(ROOT, began, true);
}

/// Over 200 seeds: synced data is always there, unsynced data is sometimes there, sometimes not,
/// and sometimes torn.
#[test]
fn synced_survives_and_unsynced_may_not() {
    let (mut whole, mut gone, mut torn, mut nameless) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut m = DiskModel::new();
        let a = file(&mut m, "a");
        write(&mut m, a, 0, 1, 2000);
        sync(&mut m, a);
        sync_root(&mut m);
        write(&mut m, a, 2000, 2, 3000);
        let b = file(&mut m, "b");
        write(&mut m, b, 0, 3, 10);
        sync(&mut m, b);
        m.power_cut(&Rng::new(seed));
        let files: BTreeMap<String, Vec<u8>> = m.files().into_iter().collect();
        let a = &files["/a"];
        assert!(a.len() >= 2000 && a[..2000].iter().all(|b| *b == 1), "seed {seed}");
        assert!(a[2000..].iter().all(|b| *b == 2 || *b == 0));
        match a[2000..].iter().filter(|b| **b == 2).count() {
            0 => gone += 1,
            3000 => whole += 1,
            _ => torn += 1,
        }
        match files.get("/b") {
            Some(b) => assert_eq!(b, &[3; 10]),
            None => nameless += 1,
        }
    }
    assert!(whole > 10 && gone > 10 && torn > 10, "{whole} {gone} {torn}");
    assert!((20..180).contains(&nameless), "{nameless}");
}

#[test]
fn rename_is_atomic_and_replaces() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..200 {
        let mut m = DiskModel::new();
        let a = file(&mut m, "a");
        write(&mut m, a, 0, 1, 4);
        sync(&mut m, a);
        sync_root(&mut m);
        let t = file(&mut m, "t");
        write(&mut m, t, 0, 2, 4);
        sync(&mut m, t);
        let op = m.rename(Path::new("t"), Path::new("a")).unwrap();
        m.name_ended(op);
        m.power_cut(&Rng::new(seed));
        let files: BTreeMap<String, Vec<u8>> = m.files().into_iter().collect();
        match files["/a"][..] {
            [1, 1, 1, 1] => old += 1,
            [2, 2, 2, 2] => new += 1,
            ref other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(old > 10 && new > 10);
}

#[test]
fn a_failed_sync_forsakes_what_it_covered() {
    let mut lost = 0;
    for seed in 0..100 {
        let mut m = DiskModel::new();
        let a = file(&mut m, "a");
        sync_root(&mut m);
        write(&mut m, a, 0, 1, 512);
        let began = m.sync_begins();
        m.sync_ended(a, began, false);
        // The second sync returns success, and means nothing for the first write.
        sync(&mut m, a);
        write(&mut m, a, 512, 2, 512);
        sync(&mut m, a);
        m.power_cut(&Rng::new(seed));
        let files = m.files();
        assert!(files[0].1[512..].iter().all(|b| *b == 2));
        lost += usize::from(files[0].1[0] == 0);
    }
    assert!((10..90).contains(&lost), "{lost}");
}

#[test]
fn a_sync_covers_only_what_ended_before_it_began() {
    let mut lost = 0;
    for seed in 0..100 {
        let mut m = DiskModel::new();
        let a = file(&mut m, "a");
        sync_root(&mut m);
        let op = m.write(a, 0, &[1; 512]).unwrap();
        let began = m.sync_begins();
        m.ended(a, op);
        m.sync_ended(a, began, true);
        m.power_cut(&Rng::new(seed));
        lost += usize::from(m.files()[0].1 != vec![1; 512]);
    }
    assert!((10..90).contains(&lost), "{lost}");
}

/// A process dies while it writes: what shows of that is the page cache's, and a sync of the next
/// process covers it.
#[test]
fn what_a_dead_process_wrote_is_synced_by_the_next() {
    for seed in 0..50 {
        let mut m = DiskModel::new();
        let a = file(&mut m, "a");
        sync_root(&mut m);
        m.write(a, 0, &[1; 2000]).unwrap();
        m.process_died();
        sync(&mut m, a);
        m.power_cut(&Rng::new(seed));
        assert_eq!(m.files(), [("/a".to_string(), vec![1; 2000])], "seed {seed}");
    }
}

/// What a power cut leaves of unsynced writes is counted: whole, in part, or nothing.
#[test]
fn a_power_cut_tells_what_it_did() {
    let (mut lost, mut torn, mut kept) = (0, 0, 0);
    for seed in 0..200 {
        let mut m = DiskModel::new();
        let a = file(&mut m, "a");
        write(&mut m, a, 0, 0, 3000);
        sync(&mut m, a);
        sync_root(&mut m);
        write(&mut m, a, 0, 2, 3000);
        let cut = m.power_cut(&Rng::new(seed));
        let [(_, bytes)] = &m.files()[..] else { panic!("one file") };
        let there = bytes.iter().filter(|byte| **byte == 2).count();
        let (is_lost, is_torn) = (there == 0, (1..3000).contains(&there));
        assert_eq!(cut, Cut { lost: is_lost.into(), torn: is_torn.into() }, "seed {seed}");
        lost += u64::from(is_lost);
        torn += u64::from(is_torn);
        kept += u64::from(there == 3000);
    }
    assert!(lost > 10 && torn > 10 && kept > 10, "{lost} {torn} {kept}");
}

#[test]
fn older_unsynced_writes_do_not_come_back_over_synced_ones() {
    for seed in 0..100 {
        let mut m = DiskModel::new();
        let a = file(&mut m, "a");
        sync_root(&mut m);
        let slow = m.write(a, 0, &[1; 2048]).unwrap();
        write(&mut m, a, 512, 2, 512);
        sync(&mut m, a);
        m.ended(a, slow);
        m.power_cut(&Rng::new(seed));
        assert_eq!(m.files()[0].1[512..1024], [2; 512]);
    }
}

/// A write in flight, cut in two by the sync of a later one, ends as a whole.
#[test]
fn a_write_cut_by_a_sync_ends_in_all_its_pieces() {
    for seed in 0..20 {
        let mut m = DiskModel::new();
        let a = file(&mut m, "a");
        sync_root(&mut m);
        let slow = m.write(a, 0, &[1; 2048]).unwrap();
        write(&mut m, a, 512, 2, 512);
        sync(&mut m, a);
        m.ended(a, slow);
        sync(&mut m, a);
        m.power_cut(&Rng::new(seed));
        let expected = [[1; 512], [2; 512], [1; 512], [1; 512]].concat();
        assert_eq!(m.files()[0].1, expected);
    }
}

#[test]
fn space_is_counted_by_names() {
    let mut m = DiskModel::new();
    let a = file(&mut m, "a");
    write(&mut m, a, 0, 1, 1000);
    m.hard_link(Path::new("a"), Path::new("b")).unwrap();
    m.remove_file(Path::new("a")).unwrap();
    assert_eq!(m.used(), 1000);
    m.remove_file(Path::new("b")).unwrap();
    assert_eq!(m.used(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Write { file: usize, at: u64, len: usize, ends: bool },
    SetLen { file: usize, len: u64, ends: bool },
    Sync { file: usize, ok: bool },
    SyncRoot,
    Rename(usize, usize),
    Link(usize, usize),
    Remove(usize),
    EndAll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0..4usize;
    let step = prop_oneof![
        file.clone().prop_map(Step::Create),
        (file.clone(), 0..4000u64, 0..3000usize, any::<bool>())
            .prop_map(|(file, at, len, ends)| Step::Write { file, at, len, ends }),
        (file.clone(), 0..5000u64, any::<bool>()).prop_map(|(file, len, ends)| Step::SetLen {
            file,
            len,
            ends
        }),
        (file.clone(), any::<bool>()).prop_map(|(file, ok)| Step::Sync { file, ok }),
        Just(Step::SyncRoot),
        (file.clone(), file.clone()).prop_map(|(a, b)| Step::Rename(a, b)),
        (file.clone(), file.clone()).prop_map(|(a, b)| Step::Link(a, b)),
        file.prop_map(Step::Remove),
        Just(Step::EndAll),
    ];
    proptest::collection::vec(step, 0..40)
}

/// Runs the steps on files a, b, c, d of the root. `syncs_fail`: whether failing syncs do fail.
fn play(model: &mut DiskModel, steps: &[Step], syncs_fail: bool) {
    let path = |n: &usize| std::path::PathBuf::from(["a", "b", "c", "d"][*n]);
    let (mut open, mut names) = (Vec::new(), Vec::new());
    for (byte, step) in steps.iter().enumerate() {
        let mut data = |model: &mut DiskModel, ino, op: io::Result<OpId>, ends: bool| match op {
            Ok(op) if ends => model.ended(ino, op),
            Ok(op) => open.push((ino, op)),
            Err(e) => panic!("{e}"),
        };
        let mut name = |model: &mut DiskModel, op: io::Result<OpId>| match op {
            Ok(op) if byte % 3 > 0 => model.name_ended(op),
            Ok(op) => names.push(op),
            Err(_) => {}
        };
        match step {
            Step::Create(n) => {
                let op = model.create(&path(n)).map(|(_, op)| op);
                name(model, op);
            }
            Step::Rename(a, b) => {
                let op = model.rename(&path(a), &path(b));
                name(model, op);
            }
            Step::Link(a, b) => {
                let op = model.hard_link(&path(a), &path(b));
                name(model, op);
            }
            Step::Remove(n) => {
                let op = model.remove_file(&path(n));
                name(model, op);
            }
            Step::Write { file, at, len, ends } => {
                let Ok(ino) = model.lookup(&path(file)) else { continue };
                let op = model.write(ino, *at, &vec![byte as u8 + 1; *len]);
                data(model, ino, op, *ends);
            }
            Step::SetLen { file, len, ends } => {
                let Ok(ino) = model.lookup(&path(file)) else { continue };
                let op = model.set_len(ino, *len);
                data(model, ino, op, *ends);
            }
            Step::Sync { file, ok } => {
                let Ok(ino) = model.lookup(&path(file)) else { continue };
                let began = model.sync_begins();
                model.sync_ended(ino, began, *ok || !syncs_fail);
            }
            Step::SyncRoot => {
                let began = model.sync_begins();
                model.dir_sync_ended(ROOT, began, !syncs_fail || byte % 4 > 0);
            }
            Step::EndAll => {
                open.drain(..).for_each(|(ino, op)| model.ended(ino, op));
                names.drain(..).for_each(|op| model.name_ended(op));
            }
        }
    }
    names.drain(..).for_each(|op| model.name_ended(op));
    open.drain(..).for_each(|(ino, op)| model.ended(ino, op));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// With everything ended and synced, a power cut changes nothing.
    #[test]
    fn a_full_sync_settles_everything(steps in steps(), seed: u64) {
        let mut m = DiskModel::new();
        play(&mut m, &steps, false);
        for file in ["a", "b", "c", "d"] {
            if let Ok(ino) = m.lookup(Path::new(file)) {
                sync(&mut m, ino);
            }
        }
        sync_root(&mut m);
        let (before, used) = (m.files(), m.used());
        m.power_cut(&Rng::new(seed));
        prop_assert_eq!(before, m.files());
        prop_assert_eq!(used, m.used());
    }

    /// Whatever the syncs were: no content from nowhere, a second cut changes nothing, and the
    /// space adds up.
    #[test]
    fn a_power_cut_leaves_only_what_was_written(steps in steps(), seed: u64) {
        let mut m = DiskModel::new();
        play(&mut m, &steps, true);
        m.power_cut(&Rng::new(seed));
        let files = m.files();
        for (_, bytes) in &files {
            prop_assert!(bytes.len() <= 7000);
            prop_assert!(bytes.iter().all(|b| usize::from(*b) <= steps.len()));
        }
        m.power_cut(&Rng::new(!seed));
        prop_assert_eq!(&files, &m.files());
        let mut inodes: Vec<_> = files.iter().map(|(p, b)| (m.lookup(Path::new(p)).unwrap(), b.len())).collect();
        inodes.sort();
        inodes.dedup();
        prop_assert_eq!(m.used(), inodes.iter().map(|(_, len)| *len as u64).sum::<u64>());
    }
}

/// Whoever syncs a directory while a sync of it fails is told, too: else a rename would be lost
/// whose own sync said that it is durable.
#[test]
fn a_failed_sync_of_a_directory_fails_those_under_way() {
    let mut m = DiskModel::new();
    file(&mut m, "a");
    let op = m.rename(Path::new("a"), Path::new("b")).unwrap();
    m.name_ended(op);
    let failing = m.sync_begins();
    let under_way = m.sync_begins();
    assert!(m.dir_sync_fails(ROOT, failing, true));
    m.dir_sync_ended(ROOT, failing, false);
    assert!(m.dir_sync_fails(ROOT, under_way, false));
    let later = m.sync_begins();
    assert!(!m.dir_sync_fails(ROOT, later, false));
}

/// The same of one that has the directory open since before, and syncs it later.
#[test]
fn a_failed_sync_of_a_directory_fails_whoever_has_it_open() {
    let mut m = DiskModel::new();
    let opened = m.sync_begins();
    file(&mut m, "a");
    let failing = m.sync_begins();
    assert!(m.dir_sync_fails(ROOT, failing, true));
    m.dir_sync_ended(ROOT, failing, false);
    assert!(m.dir_sync_fails(ROOT, opened, false));
}
