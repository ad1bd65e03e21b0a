//! What only the real make can show.
#![allow(clippy::disallowed_methods, reason = "looks at the disk behind the door's back")]

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use env::real::{RealOptions, run};
use env::{
    Class, Env, File, IoKind, ListenOptions, Mesh, OpenOptions, Pipe, TcpListener, TcpStream,
};

/// After so long without a wake-up there will be none.
const ASLEEP_FOR_GOOD: Duration = Duration::from_secs(60);

fn options(shards: usize) -> RealOptions {
    RealOptions { shards, signals: false, ring_entries: 256, ..RealOptions::default() }
}

/// Both shards listen on one port; the kernel deals 64 connections out to them.
#[test]
fn shards_listen_on_one_port() {
    run(options(2), |env: Env, mesh: Mesh<u16>| async move {
        let reuse = ListenOptions { reuse_port: true };
        let port = if env.shard() == 0 { 0 } else { mesh.recv().await.1 };
        let addr = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let listener = TcpListener::bind(&env, addr, reuse)?;
        let addr = listener.local_addr().unwrap();
        let served = Rc::new(Cell::new(0u16));
        let (n, e) = (served.clone(), env.clone());
        env.spawn(Class::Statement, async move {
            while let Ok((stream, _)) = listener.accept().await {
                n.set(n.get() + 1);
                e.spawn(Class::Statement, async move { stream.write_all(b"x").await.unwrap() });
            }
        });
        if env.shard() == 0 {
            mesh.send(1, addr.port());
            assert_eq!(mesh.recv().await, (1, 0));
            for _ in 0..64 {
                let stream = TcpStream::connect(&env, addr).await?;
                stream.read_exact(&mut [0]).await?;
            }
            mesh.send(1, 0);
            let theirs = mesh.recv().await.1;
            assert_eq!(served.get() + theirs, 64);
            assert!(served.get() > 0 && theirs > 0);
        } else {
            mesh.send(0, 0);
            mesh.recv().await;
            mesh.send(0, served.get());
        }
        Ok::<(), io::Error>(())
    })
    .unwrap();
}

/// A kernel may have messages between rings and refuse one. Nothing but a message wakes these
/// shards: neither has a timer.
#[test]
fn shards_are_woken_though_the_kernel_refuses_messages() {
    const ROUNDS: u32 = 1000;
    let (ended, wait) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if wait.recv_timeout(ASLEEP_FOR_GOOD).is_err_and(|e| e == RecvTimeoutError::Timeout) {
            eprintln!("a shard sleeps though there is a message for it");
            std::process::abort();
        }
    });
    let options = RealOptions { refuse_messages: true, ..options(2) };
    run(options, |env: Env, mesh: Mesh<u32>| async move {
        for round in 0..ROUNDS {
            if env.shard() == 0 {
                mesh.send(1, round);
                assert_eq!(mesh.recv().await, (1, round));
            } else {
                assert_eq!(mesh.recv().await, (0, round));
                mesh.send(0, round);
            }
        }
        Ok::<(), io::Error>(())
    })
    .unwrap();
    drop(ended);
    watch.join().unwrap();
}

#[test]
fn the_first_error_wins_and_stops_the_others() {
    let result = run(options(3), |env: Env, _: Mesh<()>| async move {
        if env.shard() == 1 {
            env.sleep(Duration::from_millis(5)).await;
            return Err(io::Error::other("shard 1 gives up"));
        }
        env.terminated().await;
        Ok(())
    });
    assert_eq!(result.unwrap_err().to_string(), "shard 1 gives up");
}

/// Threads that have not got to their mains yet do not take its failure for one of the start, and
/// leave it waiting for them.
#[test]
fn a_shard_that_fails_at_once_ends_the_node() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..60 {
            let result = run(options(6), |env: Env, _: Mesh<()>| async move {
                if env.shard() == 0 {
                    return Err(io::Error::other("shard 0 gives up"));
                }
                env.terminated().await;
                Ok(())
            });
            assert_eq!(result.unwrap_err().to_string(), "shard 0 gives up");
        }
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(120)).expect("all nodes end");
}

#[test]
fn stalls_are_counted_by_class() {
    run(options(1), |env: Env, _: Mesh<()>| async move {
        let e = env.clone();
        let task = env.spawn_task(Class::Compaction, async move {
            let start = e.now();
            while e.now() - start < Duration::from_millis(3) {}
            assert!(e.should_yield());
        });
        task.await;
        let stats = env.stats().class(Class::Compaction);
        assert_eq!(stats.stalls, 1);
        assert!(stats.longest_ns >= 3_000_000);
        Ok::<(), io::Error>(())
    })
    .unwrap();
}

/// Work that nobody waits for any more is not taken up; what is behind it is.
#[test]
fn spare_work_is_dropped_with_its_future() {
    run(options(1), |env: Env, _: Mesh<()>| async move {
        let ran = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let mut first = std::pin::pin!(env.spare(move || held.recv().unwrap()));
        let theirs = ran.clone();
        let add = move |n: u32| {
            theirs.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
        };
        {
            let unwanted = add.clone();
            let mut second = std::pin::pin!(env.spare(move || unwanted(1)));
            std::future::poll_fn(|cx| {
                assert!(first.as_mut().poll(cx).is_pending());
                assert!(second.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        release.send(()).unwrap();
        first.await;
        env.spare(move || add(10)).await;
        assert_eq!(ran.load(std::sync::atomic::Ordering::Relaxed), 10);
        Ok::<(), io::Error>(())
    })
    .unwrap();
}

/// A waker may be used and dropped on any thread, while the shard sleeps or not.
#[test]
fn wakers_travel() {
    run(options(1), |env: Env, _: Mesh<()>| async move {
        for i in 0..2000u64 {
            let (tx, rx) = std::sync::mpsc::channel::<std::task::Waker>();
            let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let theirs = done.clone();
            let helper = env.helper(move || {
                let waker = rx.recv().unwrap();
                if i % 3 == 0 {
                    std::thread::yield_now();
                }
                theirs.store(true, std::sync::atomic::Ordering::Release);
                waker.wake();
            });
            let mut tx = Some(tx);
            let waiting = std::future::poll_fn(move |cx| {
                if done.load(std::sync::atomic::Ordering::Acquire) {
                    return std::task::Poll::Ready(());
                }
                if let Some(tx) = tx.take() {
                    tx.send(cx.waker().clone()).unwrap();
                }
                std::task::Poll::Pending
            });
            let waiting = env.spawn_task(Class::Statement, waiting);
            helper.await;
            env.timeout(Duration::from_secs(10), waiting).await.expect("woken");
        }
        Ok::<(), io::Error>(())
    })
    .unwrap();
}

/// 200 connections at once, small and large writes, through one shard.
#[test]
fn many_connections() {
    run(options(1), |env: Env, _: Mesh<()>| async move {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = TcpListener::bind(&env, any, ListenOptions::default())?;
        let addr = listener.local_addr().unwrap();
        let e = env.clone();
        env.spawn(Class::Statement, async move {
            while let Ok((stream, _)) = listener.accept().await {
                e.spawn(Class::Statement, async move {
                    let mut buf = vec![0; 4096];
                    while let Ok(n @ 1..) = stream.read(&mut buf).await {
                        if stream.write_all(&buf[..n]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let mut tasks = Vec::new();
        for c in 0..200usize {
            let e = env.clone();
            tasks.push(env.spawn_task(Class::Statement, async move {
                let stream = TcpStream::connect(&e, addr).await?;
                for round in 0..20 {
                    let out = vec![(c + round) as u8; 1 + (c * round) % 9000];
                    stream.write_all(&out).await?;
                    let mut back = vec![0; out.len()];
                    stream.read_exact(&mut back).await?;
                    assert!(back == out);
                }
                Ok::<(), io::Error>(())
            }));
        }
        for task in tasks {
            task.await?;
        }
        Ok::<(), io::Error>(())
    })
    .unwrap();
}

/// A file goes through a pipe into a socket, whole and in order, with direct I/O and without, past
/// what the socket takes at once.
#[test]
fn a_file_is_spliced_into_a_socket() {
    let path = std::env::temp_dir().join(format!("helenus-splice-{}", std::process::id()));
    let byte = |n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8;
    let content: Vec<u8> = (0..3_000_001).map(byte).collect();
    std::fs::write(&path, &content).unwrap();
    let file = path.clone();
    run(options(1), move |env: Env, _: Mesh<u16>| {
        let (path, content) = (file.clone(), content.clone());
        async move {
            let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = TcpListener::bind(&env, any, ListenOptions::default())?;
            let to = TcpStream::connect(&env, listener.local_addr().unwrap()).await?;
            let (from, _) = listener.accept().await?;
            let length = content.len();
            let read = env.spawn_task(Class::Statement, async move {
                let mut came = vec![0; 2 * length];
                from.read_exact(&mut came).await.map(|()| came)
            });
            let pipe = Pipe::new(&env, 256 << 10)?.unwrap();
            for options in [OpenOptions::READ, OpenOptions::READ.direct()] {
                let file = File::open(&env, &path, options).await?.with_class(Class::Streaming);
                let (mut at, before) = (0, env.stats().io(Class::Streaming, IoKind::Read).bytes);
                while at < length {
                    let taken = pipe.fill(&file, at as u64, (length - at).min(256 << 10)).await?;
                    assert!(taken > 0);
                    pipe.drain(&to).await?;
                    at += taken;
                }
                assert_eq!(at, length);
                let counted = env.stats().io(Class::Streaming, IoKind::Read).bytes - before;
                assert_eq!(counted, length as u64, "it counts as a read of its class");
            }
            let came = read.await?;
            assert!(came == [content.as_slice(), &content].concat());
            Ok::<_, io::Error>(())
        }
    })
    .unwrap();
    std::fs::remove_file(&path).unwrap();
}
