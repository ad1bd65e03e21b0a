//! The simulated world: it repeats, it breaks what it promises to break, and nothing else.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{Failure, FailureKind, Fault, World, WorldOptions};
use env::{Class, Env, File, ListenOptions, Mesh, OpenOptions, TcpListener, TcpStream};

const MINUTE: Duration = Duration::from_secs(60);

fn ip(n: u8) -> std::net::IpAddr {
    std::net::Ipv4Addr::new(10, 0, 0, n).into()
}

/// A server on every shard that answers each byte with its successor and stores what it answered.
async fn serve(env: Env, mesh: Mesh<u8>) -> io::Result<()> {
    env.create_dir_all("/log").await?;
    let name = format!("/log/{}", env.shard());
    let log = Rc::new(File::open(&env, name, OpenOptions::READ_WRITE).await?);
    env.sync_dir("/log").await?;
    env.sync_dir("/").await?;
    let at = Rc::new(Cell::new(log.len().await?));
    let addr = "0.0.0.0:9042".parse().unwrap();
    let listener = TcpListener::bind(&env, addr, ListenOptions { reuse_port: true })?;
    let (m, e) = (mesh.clone(), env.clone());
    env.spawn(Class::Background, async move {
        loop {
            let _ = m.recv().await;
            e.mark("message");
        }
    });
    let accepting = env.clone();
    env.spawn(Class::Statement, async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (log, at, mesh, e) = (log.clone(), at.clone(), mesh.clone(), accepting.clone());
            accepting.spawn(Class::Statement, async move {
                let mut byte = [0];
                while let Ok(1..) = stream.read(&mut byte).await {
                    let offset = at.get();
                    at.set(offset + 1);
                    if log.write_all_at(byte.to_vec(), offset).await.0.is_err() {
                        return;
                    }
                    if log.sync_data().await.is_err() {
                        return;
                    }
                    mesh.send((e.shard() + 1) % e.shards(), byte[0]);
                    e.maybe_yield().await;
                    if stream.write_all(&[byte[0].wrapping_add(1)]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    env.terminated().await;
    Ok(())
}

/// A client that sends bytes until `n` were answered, over as many connections as that takes.
async fn ask(env: Env, to: u8, n: u32, acked: Rc<Cell<u32>>) {
    let addr = std::net::SocketAddr::new(ip(to), 9042);
    while acked.get() < n {
        let Ok(stream) = TcpStream::connect(&env, addr).await else {
            env.sleep(Duration::from_millis(50)).await;
            continue;
        };
        while acked.get() < n {
            let mut byte = [0];
            if stream.write_all(&[7]).await.is_err() || stream.read_exact(&mut byte).await.is_err()
            {
                break;
            }
            assert_eq!(byte, [8]);
            acked.set(acked.get() + 1);
        }
    }
}

fn scenario(seed: u64) -> (u64, u64) {
    let world = World::new(seed, WorldOptions::default());
    let node = world.node(ip(1));
    world.start(node, 3, serve);
    let acked = Rc::new(Cell::new(0));
    for c in 0..3 {
        let client = world.client(ip(10 + c));
        client.spawn(Class::Statement, ask(client.clone(), 1, 60, acked.clone()));
    }
    world.run_until(|| acked.get() >= 30, MINUTE).unwrap();
    world.kill(node);
    world.run_for(Duration::from_millis(20)).unwrap();
    world.restart(node);
    world.run_until(|| acked.get() >= 60, MINUTE).unwrap();
    assert!(world.marks()["message"] > 0);
    (world.trace_hash(), world.steps())
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let mut hashes = Vec::new();
    for seed in 0..10 {
        let first = scenario(seed);
        assert_eq!(first, scenario(seed), "seed {seed}");
        hashes.push(first.0);
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 10, "different seeds differ");
}

/// What was answered was synced before: no power cut may lose it.
#[test]
fn what_was_synced_survives_every_power_cut() {
    let (mut more, mut exact) = (0, 0);
    for seed in 0..200 {
        let world = World::new(seed, WorldOptions::default());
        let node = world.node(ip(1));
        world.start(node, 2, serve);
        let acked = Rc::new(Cell::new(0));
        for c in 0..3 {
            let client = world.client(ip(10 + c));
            client.spawn(Class::Statement, ask(client.clone(), 1, u32::MAX, acked.clone()));
        }
        let goal = 5 + world.rng().below(20) as u32;
        world.run_until(|| acked.get() >= goal, MINUTE).unwrap();
        world.power_cut(node);
        let stored = world
            .disk(node, |disk| {
                let files = disk.files().into_iter();
                files.map(|(_, bytes)| bytes.iter().filter(|b| **b == 7).count()).sum::<usize>()
            })
            .unwrap();
        assert!(stored >= acked.get() as usize, "seed {seed}: {stored} of {}", acked.get());
        if stored > acked.get() as usize { more += 1 } else { exact += 1 }
    }
    assert!(more > 10 && exact > 10, "{more} {exact}");
}

/// What was not synced is lost by some power cuts and kept by others, but by no kill.
#[test]
fn what_was_not_synced_may_be_lost_by_power_cuts_only() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..200 {
        let world = World::new(seed, WorldOptions::default());
        let client = world.client(ip(1));
        let node = world.node(ip(1));
        let e = client.clone();
        world
            .block_on(&client, MINUTE, async move {
                e.create_dir_all("/d").await.unwrap();
                e.sync_dir("/").await.unwrap();
                let file = File::open(&e, "/d/f", OpenOptions::READ_WRITE).await.unwrap();
                e.sync_dir("/d").await.unwrap();
                file.write_all_at(vec![1; 3000], 0).await.0.unwrap();
            })
            .unwrap();
        let len = |world: &World| world.disk(node, |d| d.files()[0].1.len()).unwrap();
        if seed % 2 == 0 {
            world.kill(node);
            assert_eq!(len(&world), 3000);
            continue;
        }
        world.power_cut(node);
        match len(&world) {
            3000 => kept += 1,
            _ => lost += 1,
        }
    }
    assert!(lost > 10 && kept > 10, "{lost} {kept}");
}

#[test]
fn a_panic_fails_the_run_and_names_the_seed() {
    let world = World::new(77, WorldOptions::default());
    let node = world.node(ip(1));
    world.start(node, 2, |env: Env, _: Mesh<()>| async move {
        env.sleep(Duration::from_millis(1)).await;
        assert!(env.shard() != 1, "shard 1 is unlucky");
        std::future::pending::<io::Result<()>>().await
    });
    let failure = world.run_for(MINUTE).unwrap_err();
    let FailureKind::Panic { shard: 1, message, .. } = &failure.what else { panic!("{failure}") };
    assert!(message.contains("unlucky"));
    assert!(failure.to_string().contains("seed 77"));
}

#[test]
fn partitions_stall_and_heal_or_break() {
    let world = World::new(3, WorldOptions::default());
    let node = world.node(ip(1));
    world.start(node, 1, serve);
    let client = world.client(ip(2));
    let (a, b) = (node, world.node(ip(2)));
    let acked = Rc::new(Cell::new(0));
    client.spawn(Class::Statement, ask(client.clone(), 1, u32::MAX, acked.clone()));
    world.run_until(|| acked.get() > 10, MINUTE).unwrap();
    world.set_fault(Fault::Partition { a: vec![a], b: vec![b] });
    world.run_for(Duration::from_secs(5)).unwrap();
    let before = acked.get();
    world.run_for(Duration::from_secs(5)).unwrap();
    assert_eq!(acked.get(), before);
    world.set_fault(Fault::Heal);
    world.run_until(|| acked.get() > before, MINUTE).unwrap();
    // Longer than TCP's patience: the connection breaks, the next one works.
    world.set_fault(Fault::Block { from: vec![b], to: vec![a] });
    world.run_for(MINUTE).unwrap();
    assert!(world.faults()["tcp_timeout"] > 0);
    let before = acked.get();
    world.set_fault(Fault::Heal);
    world.run_until(|| acked.get() > before + 10, MINUTE).unwrap();
    world.set_fault(Fault::Reset { one_in: 10 });
    world.set_fault(Fault::Loss { one_in: 10 });
    world.run_until(|| acked.get() > before + 100, MINUTE * 2).unwrap();
    assert!(world.faults()["reset"] > 0 && world.faults()["loss"] > 0);
}

/// A failed sync of a directory loses names that others created in it. Whoever had it open before
/// is told so by a sync that begins later.
#[test]
fn whoever_has_a_directory_open_hears_that_a_sync_of_it_failed() {
    let mut lost = 0;
    for seed in 0..40 {
        let world = World::new(seed, WorldOptions::default());
        let client = world.client(ip(1));
        let node = world.node(ip(1));
        let e = client.clone();
        let opened = world.block_on(&client, MINUTE, async move {
            e.create_dir_all("/d").await.unwrap();
            e.sync_dir("/").await.unwrap();
            let opened = e.open_dir("/d").await.unwrap();
            File::open(&e, "/d/f", OpenOptions::READ_WRITE).await.unwrap();
            opened
        });
        let (opened, e) = (opened.unwrap(), client.clone());
        world.set_fault(Fault::SyncError { node, one_in: 1 });
        let failed = world.block_on(&client, MINUTE, async move { e.sync_dir("/d").await });
        failed.unwrap().unwrap_err();
        world.set_fault(Fault::SyncError { node, one_in: 0 });
        let e = client.clone();
        let (early, late) = world
            .block_on(&client, MINUTE, async move {
                let late = e.open_dir("/d").await.unwrap().sync().await;
                (opened.sync().await, late)
            })
            .unwrap();
        early.unwrap_err();
        late.unwrap();
        world.power_cut(node);
        lost += usize::from(world.disk(node, |d| d.files().is_empty()).unwrap());
    }
    assert!(lost > 0, "a later sync made durable what the failed one gave up");
}

#[test]
fn disks_fail_as_told() {
    let world = World::new(5, WorldOptions { disk_bytes: 1 << 20, ..WorldOptions::default() });
    let client = world.client(ip(1));
    let node = world.node(ip(1));
    let run = |what: &'static str, fault: Option<Fault>| {
        if let Some(fault) = fault {
            world.set_fault(fault);
        }
        let e = client.clone();
        let errors = world.block_on(&client, MINUTE, async move {
            let mut errors = BTreeMap::new();
            let mut count = |name: &'static str, result: io::Result<()>| {
                if let Err(e) = result {
                    *errors.entry((name, e.raw_os_error().unwrap_or(0))).or_insert(0) += 1;
                }
            };
            for _ in 0..40 {
                let file = File::open(&e, "/f", OpenOptions::READ_WRITE).await.unwrap();
                count("write", file.write_all_at(vec![1; 4096], 0).await.0);
                count("read", file.read_at(Vec::new(), 0, 100).await.0.map(drop));
                count("sync", file.sync_data().await);
            }
            errors
        });
        let errors: BTreeMap<_, i32> = errors.unwrap();
        (what, errors)
    };
    assert!(run("healthy", None).1.is_empty());
    let (_, errors) = run("reads", Some(Fault::ReadError { node, one_in: 4 }));
    assert!(errors[&("read", 5)] > 2);
    world.set_fault(Fault::ReadError { node, one_in: 0 });
    let (_, errors) = run("writes", Some(Fault::WriteError { node, one_in: 4 }));
    assert!(errors[&("write", 5)] > 2);
    world.set_fault(Fault::WriteError { node, one_in: 0 });
    let (_, errors) = run("syncs", Some(Fault::SyncError { node, one_in: 4 }));
    assert!(errors[&("sync", 5)] > 2);
    world.set_fault(Fault::SyncError { node, one_in: 0 });
    let (_, errors) = run("full", Some(Fault::NoSpace { node, on: true }));
    assert!(errors.is_empty(), "what is written over needs no room: {errors:?}");
    let e = client.clone();
    let grown = world.block_on(&client, MINUTE, async move {
        let file = File::open(&e, "/f", OpenOptions::READ_WRITE).await.unwrap();
        file.write_all_at(vec![1; 4096], 4096).await.0
    });
    assert_eq!(grown.unwrap().unwrap_err().raw_os_error(), Some(28));
    world.set_fault(Fault::NoSpace { node, on: false });
    let e = client.clone();
    let (space, large) = world
        .block_on(&client, MINUTE, async move {
            let space = e.disk_space("/").await.unwrap();
            let file = File::open(&e, "/g", OpenOptions::READ_WRITE).await.unwrap();
            (space, file.allocate(1 << 20).await)
        })
        .unwrap();
    assert_eq!(space, (1 << 20, (1 << 20) - 4096));
    assert_eq!(large.unwrap_err().raw_os_error(), Some(28));
    world.set_fault(Fault::BitRot { node, path: "/f".into() });
    let bits: u32 =
        world.disk(node, |d| d.files()[0].1.iter().map(|b| (b ^ 1).count_ones()).sum()).unwrap();
    assert_eq!(bits, 1);
    assert_eq!(world.faults()["bit_rot"], 1);
}

#[test]
fn clocks_jump_and_unique_times_do_not_step_back() {
    let world = World::new(9, WorldOptions::default());
    let client = world.client(ip(1));
    let node = world.node(ip(1));
    let first = client.unique_micros();
    let wall = client.unix_micros();
    world.set_fault(Fault::ClockJump { node, micros: -5_000_000 });
    assert_eq!(client.unix_micros(), wall - 5_000_000);
    assert!(client.unique_micros() > first);
    assert!(client.clock_behind() > Duration::from_secs(4));
    world.set_fault(Fault::ClockJump { node, micros: 10_000_000 });
    assert_eq!(client.clock_behind(), Duration::ZERO);
}

#[test]
fn a_dark_machine_is_silent_and_a_dead_process_refuses() {
    let world = World::new(11, WorldOptions::default());
    let node = world.node(ip(1));
    let client = world.client(ip(2));
    let connect = || {
        let e = client.clone();
        let addr = std::net::SocketAddr::new(ip(1), 9042);
        let attempt = async move { TcpStream::connect(&e, addr).await.map(drop) };
        world.block_on(&client, MINUTE, attempt).unwrap()
    };
    assert_eq!(connect().unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    world.start(node, 2, serve);
    world.run_for(Duration::from_secs(1)).unwrap();
    connect().unwrap();
    world.kill(node);
    assert_eq!(connect().unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    world.power_cut(node);
    assert_eq!(connect().unwrap_err().kind(), io::ErrorKind::TimedOut);
    world.restart_with(node, 4);
    world.run_for(Duration::from_secs(1)).unwrap();
    connect().unwrap();
    world.terminate(node);
    world.run_until(|| !world.is_up(node), MINUTE).unwrap();
    assert_eq!(world.exits(node), vec![Ok(()); 4]);
}

#[test]
fn yields_vary_with_the_seed() {
    let run = |seed| -> Result<Vec<u32>, Failure> {
        let world = World::new(seed, WorldOptions::default());
        let client = world.client(ip(1));
        let e = client.clone();
        world.block_on(&client, MINUTE, async move {
            let mut yields = Vec::new();
            for i in 0..100 {
                if e.should_yield() {
                    yields.push(i);
                    e.yield_now().await;
                }
            }
            yields
        })
    };
    let runs: Vec<_> = (0..5).map(|seed| run(seed).unwrap()).collect();
    assert!(runs.iter().all(|r| (3..50).contains(&r.len())));
    assert!(runs.windows(2).any(|w| w[0] != w[1]));
}

/// Everything is freed with the world: tasks, and what they hold.
#[test]
fn a_dropped_world_drops_its_tasks() {
    let alive = Rc::new(RefCell::new(()));
    let world = World::new(1, WorldOptions::default());
    let node = world.node(ip(1));
    let held = alive.clone();
    world.start(node, 2, move |env: Env, mesh: Mesh<()>| {
        let held = held.clone();
        async move {
            let (e, h) = (env.clone(), held.clone());
            env.spawn(Class::Statement, async move {
                let _keep = (h, mesh);
                e.sleep(MINUTE).await;
            });
            let file = File::open(&env, "/x", OpenOptions::READ_WRITE).await?;
            let result = file.write_all_at(vec![0; 100], 0).await.0;
            env.sleep(MINUTE).await;
            drop(held);
            result
        }
    });
    world.run_for(Duration::from_millis(1)).unwrap();
    assert!(Rc::strong_count(&alive) > 2);
    drop(world);
    assert_eq!(Rc::strong_count(&alive), 1);
}

#[test]
fn a_world_that_ends_leaves_nothing() {
    let world = World::new(3, WorldOptions::default());
    let server = world.node(ip(1));
    world.start(server, 3, serve);
    let client = world.client(ip(2));
    let (env, held) = (client.clone(), client.clone());
    client.spawn(Class::Statement, async move {
        loop {
            let Ok(stream) = TcpStream::connect(&env, "10.0.0.1:9042".parse().unwrap()).await
            else {
                env.sleep(Duration::from_millis(1)).await;
                continue;
            };
            let _ = stream.write_all(&[1]).await;
            let _ = stream.read(&mut [0]).await;
        }
    });
    drop(client);
    world.run_for(Duration::from_millis(500)).unwrap();
    world.kill(server);
    world.restart(server);
    world.run_for(Duration::from_millis(500)).unwrap();
    assert_eq!(world.end(), 1, "what the test holds");
    drop(held);
}
