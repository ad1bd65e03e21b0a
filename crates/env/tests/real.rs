//! The real make, end to end on one and two shards.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use env::real::{RealOptions, run};
use env::{Class, Env, File, ListenOptions, Mesh, OpenOptions, TcpListener, TcpStream};

fn options(shards: usize) -> RealOptions {
    RealOptions { shards, signals: false, ring_entries: 256, ..RealOptions::default() }
}

#[test]
fn echo_and_files_on_one_shard() {
    run(options(1), |env: Env, _mesh: Mesh<()>| async move {
        let start = env.now();
        env.sleep(Duration::from_millis(5)).await;
        assert!(env.now() - start >= Duration::from_millis(5));
        let listener =
            TcpListener::bind(&env, "127.0.0.1:0".parse().unwrap(), ListenOptions::default())?;
        let addr = listener.local_addr().unwrap();
        let e = env.clone();
        env.spawn(Class::Statement, async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                e.spawn(Class::Statement, async move {
                    let mut buf = [0; 1000];
                    while let Ok(n @ 1..) = stream.read(&mut buf).await {
                        stream.write_all(&buf[..n]).await.unwrap();
                    }
                });
            }
        });
        let stream = Rc::new(TcpStream::connect(&env, addr).await?);
        let out = stream.clone();
        let task = env.spawn_task(Class::Statement, async move {
            let data: Vec<u8> = (0..1_000_000u32).map(|i| i as u8).collect();
            out.write_all(&data).await
        });
        let mut back = vec![0; 1_000_000];
        stream.read_exact(&mut back).await?;
        task.await?;
        assert!(back.iter().enumerate().all(|(i, b)| *b == i as u8));
        let dir = std::env::temp_dir().join(format!("helenus-env-smoke-{}", std::process::id()));
        env.create_dir_all(&dir).await?;
        let f = File::open(&env, dir.join("x"), OpenOptions::READ_WRITE.direct()).await?;
        let mut a = env::AlignedBuf::zeroed(8192);
        a[5000] = 7;
        f.write_all_at(a, 4096).await.0?;
        f.sync_data().await?;
        let (r, b) = f.read_exact_at(env::AlignedBuf::with_capacity(4096), 8192, 4096).await;
        r?;
        assert_eq!(b[5000 - 4096], 7);
        assert_eq!(f.len().await?, 12288);
        env.write_file_atomically(dir.join("y"), b"hello".to_vec()).await?;
        assert_eq!(env.read_file(dir.join("y"), 10).await?, b"hello");
        env.remove_dir_all(&dir).await?;
        assert_eq!(env.helper(|| 1 + 1).await, 2);
        Ok::<(), io::Error>(())
    })
    .unwrap();
}

#[test]
fn mesh_between_two_shards() {
    run(RealOptions { mesh_entries: 16, ..options(2) }, |env: Env, mesh: Mesh<u64>| async move {
        let peer = 1 - env.shard();
        for i in 0..10_000 {
            mesh.send(peer, i);
            if i % 100 == 0 {
                env.yield_now().await;
            }
        }
        for i in 0..10_000 {
            assert_eq!(mesh.recv().await, (peer, i));
        }
        Ok::<(), io::Error>(())
    })
    .unwrap();
}
