//! What must hold in both makes: each test runs on `real` once and in `sim` under many seeds.
#![allow(clippy::disallowed_methods, reason = "looks at the disk behind the door's back")]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use env::real::{RealOptions, run};
use env::sim::{World, WorldOptions};
use env::sync::{Queue, Semaphore, oneshot};
use env::{
    AlignedBuf, Class, Env, File, ListenOptions, Mesh, OpenOptions, StreamHandle, TcpListener,
    TcpStream, TimedOut,
};

const SEEDS: u64 = 25;

/// Messages of the tests.
enum Msg {
    Number(u64),
    Stream(StreamHandle),
}

fn temp_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("helenus-env-{}-{n}", std::process::id()))
}

/// Runs `main` on every shard of a real node, then of simulated ones.
fn both<F, Fut>(shards: usize, main: F)
where
    F: Fn(Env, Mesh<Msg>, PathBuf) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = io::Result<()>> + 'static,
{
    let dir = temp_dir();
    std::fs::create_dir_all(&dir).unwrap();
    let (real, real_dir) = (main.clone(), dir.clone());
    let options = RealOptions {
        shards,
        signals: false,
        ring_entries: 64,
        mesh_entries: 64,
        io_depth: 4,
        ..RealOptions::default()
    };
    run(options, move |env, mesh| real(env, mesh, real_dir.clone())).unwrap();
    let _ = std::fs::remove_dir_all(&dir);
    for seed in 0..SEEDS {
        let world = World::new(seed, WorldOptions::default());
        let node = world.node("10.0.0.1".parse().unwrap());
        let main = main.clone();
        world.start(node, shards, move |env: Env, mesh| {
            let main = main.clone();
            async move {
                env.create_dir_all("/data").await?;
                main(env, mesh, PathBuf::from("/data")).await
            }
        });
        world.run_until(|| !world.is_up(node), Duration::from_secs(600)).unwrap();
        let exits = world.exits(node);
        assert!(exits.iter().all(Result::is_ok), "seed {seed}: {exits:?}");
        assert_eq!(exits.len(), shards);
    }
}

#[test]
fn echo_over_two_shards_with_the_stream_handed_over() {
    both(2, |env, mesh, _| async move {
        if env.shard() == 1 {
            // Serves the streams that shard 0 accepts.
            let (_, Msg::Stream(handle)) = mesh.recv().await else { panic!("a stream") };
            let stream = TcpStream::from_raw(&env, handle)?;
            let mut buf = [0; 777];
            loop {
                match stream.read(&mut buf).await? {
                    0 => break,
                    n => stream.write_all(&buf[..n]).await?,
                }
            }
            return Ok(());
        }
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = TcpListener::bind(&env, any, ListenOptions::default())?;
        let addr = listener.local_addr().unwrap();
        let e = env.clone();
        let accept = env.spawn_task(Class::Statement, async move {
            let (stream, client) = listener.accept().await.unwrap();
            assert_ne!(client.port(), 0);
            mesh.send(1, Msg::Stream(stream.into_raw().unwrap()));
            client
        });
        let stream = Rc::new(TcpStream::connect(&e, addr).await?);
        assert_eq!(accept.await, stream.local_addr().unwrap());
        let data: Rc<Vec<u8>> = Rc::new((0..200_000u32).map(|i| (i * 7) as u8).collect());
        let (out, sent) = (stream.clone(), data.clone());
        let writer = e.spawn_task(Class::Statement, async move {
            out.write_all(&sent).await?;
            out.shutdown(std::net::Shutdown::Write)
        });
        let mut back = vec![0; data.len()];
        stream.read_exact(&mut back).await?;
        writer.await?;
        assert!(back == *data);
        assert_eq!(stream.read(&mut [0; 10]).await?, 0);
        Ok(())
    });
}

#[test]
fn unix_sockets() {
    both(1, |env, _, dir| async move {
        let path = dir.join("admin.sock");
        let listener = TcpListener::bind_unix(&env, &path)?;
        let (client, server) =
            (TcpStream::connect_unix(&env, &path).await?, listener.accept().await?.0);
        client.write_all(b"hello").await?;
        let mut buf = [0; 5];
        server.read_exact(&mut buf).await?;
        assert_eq!(&buf, b"hello");
        assert_eq!(client.peer_addr(), None);
        drop(client);
        assert_eq!(server.read(&mut buf).await?, 0);
        Ok(())
    });
}

#[test]
fn refused_and_reset() {
    both(1, |env, _, _| async move {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = TcpListener::bind(&env, any, ListenOptions::default())?;
        let addr = listener.local_addr().unwrap();
        let again = TcpListener::bind(&env, addr, ListenOptions::default());
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let client = TcpStream::connect(&env, addr).await?;
        let (server, _) = listener.accept().await?;
        client.write_all(b"unread").await?;
        server.readable().await;
        // Closed with bytes unread: the client sees a reset.
        drop(server);
        let error = client.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        drop(listener);
        let refused = TcpStream::connect(&env, addr).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        Ok(())
    });
}

#[test]
fn files() {
    both(1, |env, _, dir| async move {
        let path = dir.join("f");
        assert!(!env.exists(&path).await?);
        let missing = File::open(&env, &path, OpenOptions::READ).await;
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
        let file = File::open(&env, &path, OpenOptions::CREATE_NEW).await?;
        let twice = File::open(&env, &path, OpenOptions::CREATE_NEW).await;
        assert_eq!(twice.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let data: Vec<u8> = (0..100_000u32).map(|i| (i >> 4) as u8).collect();
        let (result, data) = file.write_all_at(data, 10).await;
        result?;
        file.sync_data().await?;
        let (result, back) = file.read_exact_at(Vec::new(), 10, 100_000).await;
        result?;
        assert!(back == data);
        let (result, back) = file.read_at(back, 100_000, 100).await;
        assert_eq!((result?, back.len()), (10, 10));
        let (result, _) = file.read_exact_at(back, 100_000, 100).await;
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        file.allocate(200_000).await?;
        assert_eq!(file.len().await?, 200_000);
        file.set_len(5).await?;
        assert_eq!(env.read_file(&path, 5).await?, [0; 5]);
        assert_eq!(env.read_file(&path, 4).await.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        env.hard_link(&path, dir.join("g")).await?;
        env.rename(&path, dir.join("h")).await?;
        env.create_dir_all(dir.join("sub/deep")).await?;
        env.write_file_atomically(dir.join("sub/x"), vec![1; 10]).await?;
        env.sync_dir(&dir).await?;
        let names: Vec<_> =
            env.read_dir(&dir).await?.into_iter().map(|e| (e.name, e.is_dir)).collect();
        let name = |n: &str, d| (n.to_string(), d);
        assert_eq!(names, [name("g", false), name("h", false), name("sub", true)]);
        env.remove_file(dir.join("g")).await?;
        env.remove_dir_all(dir.join("sub")).await?;
        assert!(!env.exists(dir.join("sub/x")).await?);
        assert!(env.metadata(&dir).await?.unwrap().is_dir);
        let (total, free) = env.disk_space(&dir).await?;
        assert!(total >= free && free > 0);
        assert!(env.stats().io(Class::Admin, env::IoKind::Write).bytes >= 100_000);
        Ok(())
    });
}

#[test]
fn a_write_that_does_not_wait_is_there() {
    both(1, |env, _, dir| async move {
        let file = File::open(&env, dir.join("now"), OpenOptions::READ_WRITE).await?;
        let written = env.stats().io(Class::CommitLog, env::IoKind::Write).bytes;
        let log = file.with_class(Class::CommitLog);
        log.write_now(&[1; 3000], 0)?;
        log.write_now(&[2; 10], 2990)?;
        let (result, bytes) = file.read_exact_at(Vec::new(), 0, 3000).await;
        result?;
        assert!(bytes[..2990].iter().all(|byte| *byte == 1));
        assert!(bytes[2990..].iter().all(|byte| *byte == 2));
        let now = env.stats().io(Class::CommitLog, env::IoKind::Write).bytes;
        assert_eq!(now - written, 3010);
        let file = File::open(&env, dir.join("now"), OpenOptions::READ).await?;
        assert!(file.write_now(&[3; 10], 0).is_err());
        Ok(())
    });
}

#[test]
fn what_is_in_memory_is_read_without_waiting() {
    both(1, |env, _, dir| async move {
        let file = File::open(&env, dir.join("now"), OpenOptions::READ_WRITE).await?;
        file.write_all_at(vec![7; 3000], 0).await.0?;
        // the simulated kernel has it as often as not
        let mut had = None;
        for _ in 0..100 {
            let (is_there, bytes) = file.read_now(Vec::new(), 1000, 2000);
            had = had.or(is_there.then_some(bytes));
        }
        // not every file system can say so, and then it never is
        let is_simulated = dir.starts_with("/data");
        assert!(had.is_some() || !is_simulated);
        assert!(had.is_none_or(|had| had == [7; 2000]));
        let (is_there, _) = file.read_now(Vec::new(), 1001, 2000);
        assert!(!is_there, "the file ends before that");
        Ok(())
    });
}

#[test]
fn direct_files_and_many_at_once() {
    both(1, |env, _, dir| async move {
        let file = File::open(&env, dir.join("d"), OpenOptions::READ_WRITE.direct()).await?;
        let mut tasks = Vec::new();
        for i in 0..40u64 {
            let file = file.with_class(Class::ALL[i as usize % 7]);
            tasks.push(env.spawn_task(Class::Background, async move {
                let mut buf = AlignedBuf::zeroed(4096);
                buf.fill(i as u8);
                file.write_all_at(buf, i * 4096).await.0?;
                file.read_exact_at(AlignedBuf::with_capacity(4096), i * 4096, 4096).await.0
            }));
        }
        for task in tasks {
            task.await?;
        }
        let (result, all) = file.read_exact_at(AlignedBuf::with_capacity(0), 0, 40 * 4096).await;
        result?;
        assert!(all.iter().enumerate().all(|(at, b)| *b as usize == at / 4096));
        assert_eq!(env.stats().io_in_flight, 0);
        Ok(())
    });
}

#[test]
fn a_dropped_read_or_write_is_safe() {
    both(1, |env, _, dir| async move {
        let file = File::open(&env, dir.join("f"), OpenOptions::READ_WRITE).await?;
        file.write_all_at(vec![7; 1 << 20], 0).await.0?;
        for i in 0..200u64 {
            {
                let mut read = pin!(file.read_at(Vec::new(), 0, 1 << 16));
                let mut write = pin!(file.write_all_at(vec![i as u8; 4096], 1 << 20));
                // Started, then dropped.
                std::future::poll_fn(|cx| {
                    let _ = (read.as_mut().poll(cx), write.as_mut().poll(cx));
                    Poll::Ready(())
                })
                .await;
            }
            if i % 16 == 0 {
                env.yield_now().await;
            }
        }
        // The dropped writes end all the same.
        while env.stats().io_in_flight + env.stats().io_queued > 0 {
            env.sleep(Duration::from_micros(100)).await;
        }
        let (result, buf) = file.read_exact_at(Vec::new(), 1 << 20, 4096).await;
        result?;
        // A dropped write may be short, but never of a freed buffer.
        assert!(buf.chunks(512).all(|s| s[0] < 200 && s.iter().all(|b| *b == s[0])));
        Ok(())
    });
}

#[test]
fn a_second_lock_is_refused() {
    both(1, |env, _, dir| async move {
        let path = dir.join("node.lock");
        let lock = env.lock_file(&path).await?;
        let second = env.lock_file(&path).await.unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        assert!(second.to_string().contains("another node"));
        drop(lock);
        let _again = env.lock_file(&path).await?;
        Ok(())
    });
}

#[test]
fn timers_fire_in_order_and_timeouts_cancel() {
    both(1, |env, _, _| async move {
        let order = Rc::new(RefCell::new(Vec::new()));
        let start = env.now();
        let mut tasks = Vec::new();
        for ms in [9u64, 3, 6, 1, 12] {
            let (e, order) = (env.clone(), order.clone());
            tasks.push(env.spawn_task(Class::Statement, async move {
                e.sleep_until(start + Duration::from_millis(ms)).await;
                assert!(e.now() >= start + Duration::from_millis(ms));
                order.borrow_mut().push(ms);
            }));
        }
        for task in tasks {
            task.await;
        }
        assert_eq!(*order.borrow(), [1, 3, 6, 9, 12]);
        let never = std::future::pending::<()>();
        assert_eq!(env.timeout(Duration::from_millis(2), never).await, Err(TimedOut));
        assert_eq!(env.timeout(Duration::from_secs(60), async { 5 }).await, Ok(5));
        let e = env.clone();
        let soon = async move { e.sleep(Duration::from_millis(1)).await };
        assert_eq!(env.timeout(Duration::from_secs(60), soon).await, Ok(()));
        assert_eq!(env.stats().timers, 0);
        Ok(())
    });
}

#[test]
fn classes_share_the_cpu() {
    both(1, |env, _, _| async move {
        // Each poll costs real or virtual time; the shares are 10 to 1.
        let counts = [Class::Statement, Class::Background].map(|class| {
            let count = Rc::new(Cell::new(0u64));
            let (n, e) = (count.clone(), env.clone());
            env.spawn(class, async move {
                loop {
                    n.set(n.get() + 1);
                    let start = e.now();
                    while e.now() - start < Duration::from_micros(20) && !e.should_yield() {}
                    e.yield_now().await;
                }
            });
            count
        });
        // Counted by polls, not by time: a busy machine takes time away from either.
        while counts.iter().map(|c| c.get()).sum::<u64>() < 2000 {
            env.sleep(Duration::from_millis(5)).await;
        }
        let [statement, background] = counts.map(|c| c.get());
        assert!(background > 5, "background starves: {statement} {background}");
        // a busy machine takes time from whoever runs, and counts it as used: far less than 10 to 1
        assert!(2 * statement > 3 * background, "{statement} {background}");
        assert!(env.stats().class(Class::Statement).polls >= statement);
        Ok(())
    });
}

#[test]
fn hooks_run_once_for_many_tasks() {
    both(1, |env, _, _| async move {
        let (calls, dirty, flushed) =
            (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (c, d, f) = (calls.clone(), dirty.clone(), flushed.clone());
        let guard = env.at_turn_end(move || {
            c.set(c.get() + 1);
            f.set(f.get() + d.replace(0));
        });
        for _ in 0..1000 {
            let d = dirty.clone();
            env.spawn(Class::Statement, async move { d.set(d.get() + 1) });
        }
        while flushed.get() < 1000 {
            env.sleep(Duration::from_micros(50)).await;
        }
        assert!(calls.get() < 500, "{} calls", calls.get());
        drop(guard);
        let before = calls.get();
        env.sleep(Duration::from_millis(1)).await;
        assert_eq!(calls.get(), before);
        Ok(())
    });
}

#[test]
fn ten_thousand_messages_each_way() {
    both(3, |env, mesh, _| async move {
        // To all, itself included; rings of 64 spill.
        for i in 0..3333 {
            (0..3).for_each(|to| mesh.send(to, Msg::Number(i)));
            if i % 512 == 0 {
                env.yield_now().await;
            }
        }
        let mut next = [0; 3];
        for _ in 0..9999 {
            let (from, Msg::Number(i)) = mesh.recv().await else { panic!("a number") };
            assert_eq!(i, next[from]);
            next[from] += 1;
        }
        Ok(())
    });
}

#[test]
fn helpers_and_local_primitives() {
    both(1, |env, _, _| async move {
        assert_eq!(env.helper(|| (0..1000u64).sum::<u64>()).await, 499_500);
        assert_eq!(env.spare(|| (0..1000u64).sum::<u64>()).await, 499_500);
        let (tx, rx) = oneshot();
        env.spawn(Class::Statement, async move { tx.send(5).unwrap() });
        assert_eq!(rx.await, Ok(5));
        let (tx, rx) = oneshot::<()>();
        drop(tx);
        assert!(rx.await.is_err());
        // FIFO: the large request is not overtaken.
        let sem = Semaphore::new(10);
        let held = sem.acquire(6).await;
        let order = Rc::new(RefCell::new(Vec::new()));
        let mut large = pin!(sem.acquire(8));
        std::future::poll_fn(|cx| {
            assert!(large.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        let (s, o) = (sem.clone(), order.clone());
        let small = env.spawn_task(Class::Statement, async move {
            let _permit = s.acquire(2).await;
            o.borrow_mut().push("small");
        });
        env.sleep(Duration::from_millis(1)).await;
        assert!(order.borrow().is_empty() && sem.try_acquire(1).is_err());
        drop(held);
        let permit = large.await;
        drop(permit);
        small.await;
        assert_eq!(sem.available(), 10);
        let queue = Queue::new(4);
        let q = queue.clone();
        let producer = env.spawn_task(Class::Statement, async move {
            for i in 0..100 {
                q.push(i).await.unwrap();
                assert!(q.len() <= 4);
            }
            q.close();
        });
        for i in 0..100 {
            assert_eq!(queue.pop().await, Ok(i));
        }
        assert!(queue.pop().await.is_err());
        producer.await;
        Ok(())
    });
}

#[test]
fn cancelled_tasks_drop_their_futures() {
    both(1, |env, _, _| async move {
        struct Count(Rc<Cell<u32>>);
        impl Drop for Count {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let drops = Rc::new(Cell::new(0));
        let (count, e) = (Count(drops.clone()), env.clone());
        let task = env.spawn_task(Class::Statement, async move {
            e.sleep(Duration::from_secs(1000)).await;
            drop(count);
        });
        env.yield_now().await;
        assert_eq!(task.cancel().await, None);
        assert_eq!(drops.get(), 1);
        assert_eq!(env.stats().timers, 0);
        let task = env.spawn_task(Class::Statement, async { 3 });
        env.sleep(Duration::from_millis(1)).await;
        assert!(task.is_finished());
        assert_eq!(task.cancel().await, Some(3));
        Ok(())
    });
}

#[test]
fn unique_micros_never_repeat_across_shards() {
    both(2, |env, mesh, _| async move {
        let mine: Vec<i64> = (0..1000).map(|_| env.unique_micros()).collect();
        assert!(mine.windows(2).all(|w| w[0] < w[1]));
        let peer = 1 - env.shard();
        mine.iter().for_each(|i| mesh.send(peer, Msg::Number(*i as u64)));
        for _ in 0..1000 {
            let (_, Msg::Number(theirs)) = mesh.recv().await else { panic!("a number") };
            assert!(mine.binary_search(&(theirs as i64)).is_err());
        }
        let floor = env.unix_micros() + 60_000_000;
        env.raise_unique_floor(floor);
        assert!(env.unique_micros() > floor);
        assert!(env.clock_behind() > Duration::from_secs(50));
        Ok(())
    });
}

#[test]
fn the_order_to_end_reaches_every_shard() {
    both(3, |env, _, dir: PathBuf| async move {
        assert_eq!(dir, Path::new(&dir));
        if env.shard() == 2 {
            env.sleep(Duration::from_millis(2)).await;
            env.terminate();
        }
        env.terminated().await;
        assert!(env.is_terminated());
        Ok(())
    });
}

#[test]
fn each_operation_is_accounted_to_who_asked_for_it() {
    both(1, |env, _, dir| async move {
        let path = dir.join("f");
        let first = env.io_window();
        let file = Rc::new(File::open(&env, &path, OpenOptions::READ_WRITE).await?);
        let (flushing, reading) = (file.clone(), file.clone());
        let write = async move {
            flushing.write_all_at(vec![7; (1 << 20) + 1], 0).await.0?;
            flushing.write_back(0, 1 << 20).await?;
            flushing.sync_all().await
        };
        env.spawn_task(Class::Flush, write).await?;
        let read = async move { reading.read_exact_at(Vec::new(), 8192, 4096).await.0 };
        env.spawn_task(Class::Statement, read).await?;
        drop(file);
        env.remove_file(&path).await?;
        let pattern = env.io_pattern(first..env.io_window() + 1);
        let flow = |class, kind| {
            let flows = pattern.flows();
            let found = flows.iter().find(|flow| flow.class == class && flow.kind == kind);
            found.map(|flow| (flow.ops, flow.bytes, flow.sizes)).unwrap()
        };
        // a megabyte in pieces, however short the disk cut them, and the byte that is left
        let (ops, bytes, sizes) = flow(Class::Flush, env::IoKind::Write);
        assert!(bytes == (1 << 20) + 1 && ops >= 5, "{ops} writes of {bytes}");
        assert_eq!(sizes[10..].iter().sum::<u64>(), 0, "a piece is larger than 256 KiB");
        assert_eq!(flow(Class::Flush, env::IoKind::WriteBack).0, 1);
        assert_eq!(flow(Class::Flush, env::IoKind::Sync).0, 1);
        let (ops, bytes, sizes) = flow(Class::Statement, env::IoKind::Read);
        assert_eq!((ops, bytes, sizes[3]), (1, 4096, 1));
        let (ops, bytes, _) = flow(Class::Admin, env::IoKind::Discard);
        assert_eq!((ops, bytes), (1, (1 << 20) + 1));
        let total = |kind| pattern.windows.iter().map(|w| w.kind(kind).bytes).sum::<u64>();
        assert_eq!((total(env::IoKind::Write), total(env::IoKind::Read)), ((1 << 20) + 1, 4096));
        assert!(pattern.windows.iter().any(|window| window.in_flight > 0));
        Ok(())
    });
}
