//! Nodes that keep hints and deliver them, and lose their power in between, by seed: what was
//! acknowledged is delivered, in order, and what was delivered and saved is not delivered again
//! from the start.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use env::Env;
use env::sim::{World, WorldOptions};
use hints::{Compression, Hint, Hints, Options, SyncMode};
use types::Uuid;

/// Worlds in which a planted bug is to be found; a law has ten times as many.
const SEEDS: u64 = 40;
/// Lives of a node in a world.
const LIVES: u64 = 6;
/// Hosts that miss writes.
const HOSTS: u64 = 3;

/// What the world knows.
#[derive(Default)]
struct Seen {
    /// The number of the next hint.
    next: Cell<u64>,
    /// By host: hints that were acknowledged, and those that were delivered.
    acknowledged: RefCell<BTreeMap<u64, Vec<u64>>>,
    delivered: RefCell<BTreeMap<u64, Vec<u64>>>,
    /// Hints whose delivery was saved since the last power cut.
    saved: RefCell<BTreeSet<u64>>,
    /// Was one of them delivered again?
    again: Cell<Option<u64>>,
    /// Has nothing to be added any more?
    is_over: Cell<bool>,
    is_done: Cell<bool>,
    told: RefCell<Vec<String>>,
}

fn host(n: u64) -> Uuid {
    Uuid(0x1000 + u128::from(n))
}

fn options(seed: u64) -> Options {
    let mode = match seed % 2 {
        0 => SyncMode::Batch,
        _ => SyncMode::Group { window: Duration::from_millis(2) },
    };
    let lz4 = || Compression::new("LZ4Compressor", BTreeMap::new()).expect("a class");
    Options {
        directory: "/node/hints".into(),
        mode,
        compression: seed.is_multiple_of(3).then(lz4),
        file_bytes_max: 4 << 10,
        waiting_bytes_max: 64 << 10,
    }
}

/// A mutation that says its number, of a size that depends on it.
fn mutation(n: u64) -> Vec<u8> {
    let mut bytes = n.to_be_bytes().to_vec();
    bytes.resize(8 + (n as usize * 37) % 700, n as u8);
    bytes
}

async fn keep(env: Env, hints: Rc<Hints>, seen: Rc<Seen>) {
    while !seen.is_over.get() {
        for _ in 0..env.random_u64() % 6 {
            let (n, to) = (seen.next.get(), env.random_u64() % HOSTS);
            seen.next.set(n + 1);
            let mutation = mutation(n);
            let ticket =
                hints.add(host(to), &Hint { created: 1, gc_grace: 9, mutation: &mutation });
            let seen = Rc::clone(&seen);
            env.spawn(env::Class::Statement, async move {
                if ticket.durable().await.is_ok() {
                    seen.acknowledged.borrow_mut().entry(to).or_default().push(n);
                }
            });
        }
        env.sleep(Duration::from_micros(env.random_u64() % 900)).await;
    }
}

async fn deliver(env: Env, hints: Rc<Hints>, seen: Rc<Seen>) -> std::io::Result<()> {
    loop {
        let kept = hints.kept();
        if kept.is_empty() && seen.is_over.get() {
            seen.is_done.set(true);
        }
        for kept in kept {
            let Some(file) = hints.first(kept.host) else { continue };
            let mut reader = hints.read(&file).await?;
            let page = reader.page().await?;
            assert!(page.damaged == 0 || !file.is_closed(), "nothing is damaged here");
            let some = match seen.is_over.get() {
                true => page.hints.len(),
                false => env.random_u64() as usize % (page.hints.len() + 1),
            };
            let mut sent = Vec::new();
            for hint in page.hints.iter().take(some) {
                let bytes = hint.hint().mutation;
                let n = u64::from_be_bytes(*bytes.first_chunk().expect("a number"));
                assert_eq!(bytes, mutation(n), "the hint is as it was");
                let to = (kept.host.0 - 0x1000) as u64;
                seen.delivered.borrow_mut().entry(to).or_default().push(n);
                file.set_sent(hint.end);
                // of a block that is delivered in part, all is
                let is_plain = file.descriptor.compression.is_none();
                if is_plain && seen.saved.borrow().contains(&n) {
                    seen.again.set(Some(n));
                }
                sent.push(n);
            }
            if page.hints.is_empty() {
                file.set_sent(page.next);
            }
            hints.save_progress(&file).await?;
            seen.saved.borrow_mut().extend(sent);
            hints.finish(&file).await?;
        }
        env.sleep(Duration::from_millis(1 + env.random_u64() % 8)).await;
    }
}

async fn run(env: Env, seed: u64, seen: Rc<Seen>) -> std::io::Result<()> {
    let told = Rc::clone(&seen);
    let tell =
        Box::new(move |_: metrics::Level, text: &str| told.told.borrow_mut().push(text.to_owned()));
    env.create_dir_all("/node/hints").await?;
    env.sync_dir("/node").await?;
    env.sync_dir("/").await?;
    let hints = Hints::start(&env, options(seed), tell).await?;
    env.spawn(env::Class::Statement, keep(env.clone(), Rc::clone(&hints), Rc::clone(&seen)));
    deliver(env, hints, seen).await
}

/// A world's result: what is wrong with it, if anything.
fn world(seed: u64, planted: Option<&'static str>) -> Result<(), String> {
    let (world, seen) = (World::new(seed, WorldOptions::default()), Rc::new(Seen::default()));
    if let Some(planted) = planted {
        world.plant(planted);
    }
    let node = world.node([10, 0, 0, 1].into());
    let inside = Rc::downgrade(&seen);
    world.start(node, 1, move |env, _: env::Mesh<()>| {
        let seen = inside.upgrade().expect("the test holds it");
        run(env, seed, seen)
    });
    for _ in 0..LIVES {
        let life = Duration::from_millis(5 + world.rng().next() % 60);
        world.run_for(life).map_err(|e| e.to_string())?;
        match world.rng().next() % 3 {
            0 => world.kill(node),
            _ => {
                seen.saved.borrow_mut().clear();
                world.power_cut(node);
            }
        }
        world.restart(node);
    }
    seen.is_over.set(true);
    let done = || seen.is_done.get();
    world.run_until(done, Duration::from_secs(60)).map_err(|e| e.to_string())?;
    let is_torn = |told: &&String| told.contains("its header fails its checksum");
    if let Some(told) = seen.told.borrow().iter().find(|told| !is_torn(told)) {
        return Err(format!("it said {told}"));
    }
    match seen.again.get() {
        Some(n) => Err(format!("hint {n} was delivered again")),
        None => check(&seen),
    }
}

fn check(seen: &Seen) -> Result<(), String> {
    let (acknowledged, delivered) = (seen.acknowledged.borrow(), seen.delivered.borrow());
    for (host, acknowledged) in acknowledged.iter() {
        let delivered = delivered.get(host).map_or(&[][..], Vec::as_slice);
        if let Some(lost) = acknowledged.iter().find(|n| !delivered.contains(n)) {
            return Err(format!("hint {lost} of host {host} was lost"));
        }
    }
    for (host, delivered) in delivered.iter() {
        let mut first = Vec::new();
        for n in delivered {
            if !first.contains(n) {
                first.push(*n);
            }
        }
        if !first.is_sorted() {
            return Err(format!("host {host} got its hints out of order"));
        }
    }
    Ok(())
}

#[test]
fn what_was_acknowledged_is_delivered() {
    for seed in 0..10 * SEEDS {
        if let Err(what) = world(seed, None) {
            panic!("seed {seed}: {what}");
        }
    }
}

#[test]
fn planted_bugs_are_found() {
    for bug in [
        "hint_dropped",
        "hint_acknowledged_early",
        "hints_directory_not_synced",
        "hints_resumed_late",
        "hints_started_over",
    ] {
        let found = (0..SEEDS).find_map(|seed| world(seed, Some(bug)).err());
        println!("{bug}: {found:?}");
        assert!(found.is_some(), "{bug} is not found");
    }
}
