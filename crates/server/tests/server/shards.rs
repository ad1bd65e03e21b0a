//! Connections of the shard-aware port end on the shard that their source port names.

use std::net::SocketAddr;
use std::rc::Rc;

use env::{Class, TcpStream};
use metrics::Registry;
use protocol::Version;
use protocol::client::{self, Body};
use server::{ConnectionLimits, EventHub, Server, Settings};

use crate::client::{Client, cell};
use crate::mock::Mock;
use crate::world::{Msg, both, settings};

#[test]
fn the_source_port_chooses_the_shard() {
    both(2, |env, mesh| async move {
        let wanted: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (listen, shard_aware) = match env.shard() {
            0 => (wanted, wanted),
            _ => match mesh.recv().await {
                (_, Msg::Address(listen, shard_aware)) => (listen, shard_aware),
                _ => panic!("the addresses come first"),
            },
        };
        let settings = Settings { listen, shard_aware: Some(shard_aware), ..settings() };
        let mock = Rc::new(Mock { env: Some(env.clone()), ..Mock::default() });
        let registry = Registry::new(env.shard() as u32);
        let away = mesh.clone();
        let server = Server::start(
            &env,
            settings,
            mock,
            EventHub::new(),
            &registry,
            ConnectionLimits::new(),
            Some(Rc::new(move |shard, handle| away.send(shard, Msg::Stream(handle)))),
        )?;
        let server = Rc::new(server);
        let address = server.shard_aware_address().unwrap();
        if env.shard() == 1 {
            mesh.send(0, Msg::Done);
            loop {
                match mesh.recv().await.1 {
                    Msg::Stream(handle) => server.adopt(handle)?,
                    _ => return Ok(()),
                }
            }
        }
        mesh.send(1, Msg::Address(server.address(), address));
        assert!(matches!(mesh.recv().await.1, Msg::Done));
        let (adopting, arriving) = (Rc::clone(&server), mesh.clone());
        env.spawn(Class::Statement, async move {
            while let Msg::Stream(handle) = arriving.recv().await.1 {
                adopting.adopt(handle).unwrap();
            }
        });
        for attempt in 0..40 {
            let stream = TcpStream::connect(&env, address).await?;
            let port = stream.local_addr().unwrap().port();
            let mut client = Client::over(&env, stream);
            let call = client.call(attempt);
            client.put(|out| client::options(out, call));
            client.flush().await;
            let Body::Supported(options) = client.receive().await.body else { panic!() };
            let of = |key: &str| {
                let found = options.iter().find(|(name, _)| name == key);
                found.map(|(_, values)| values.join(" ")).unwrap()
            };
            assert_eq!(of("SCYLLA_SHARD"), (port % 2).to_string());
            assert_eq!(of("SCYLLA_NR_SHARDS"), "2");
            assert_eq!(of("SCYLLA_PARTITIONER"), "org.apache.cassandra.dht.Murmur3Partitioner");
            assert_eq!(of("SCYLLA_SHARDING_ALGORITHM"), "biased-token-round-robin");
            assert_eq!(of("SCYLLA_SHARDING_IGNORE_MSB"), "12");
            assert_eq!(of("SCYLLA_SHARD_AWARE_PORT"), address.port().to_string());
            assert_eq!(options.len(), 9);
            // who did not ask before STARTUP was told nothing, whatever is asked later
            let mut other = Client::connect(&env, address).await;
            for (client, told) in [(&mut client, 1), (&mut other, 0)] {
                client.startup(Version::V5, None).await;
                let call = client.call(1);
                client.put(|out| client::options(out, call));
                client.flush().await;
                assert!(matches!(client.receive().await.body, Body::Supported(_)));
                assert_eq!(cell(&client.query("aware").await), [told]);
            }
        }
        mesh.send(1, Msg::Done);
        Ok(())
    });
}
