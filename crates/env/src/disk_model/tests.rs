//! Laws of the model.

use super::*;

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

/// Over 200 seeds: synced data is always there, unsynced data is sometimes there, sometimes not, and
/// sometimes torn.
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
