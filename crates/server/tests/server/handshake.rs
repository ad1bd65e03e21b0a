//! From the first byte to the first statement.

use std::time::Duration;

use protocol::client::{self, Answer, Body};
use protocol::{Compression, ErrorDetail, EventType, Started, Version};
use server::Settings;

use crate::client::{cell, error};
use crate::mock::Mock;
use crate::world::{Place, both, settings};

#[test]
fn every_version_and_compression_runs_statements() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let modes = [
            (Version::V3, None),
            (Version::V3, Some(Compression::Snappy)),
            (Version::V4, None),
            (Version::V4, Some(Compression::Lz4)),
            (Version::V4, Some(Compression::Snappy)),
            (Version::V5, None),
            (Version::V5, Some(Compression::Lz4)),
            (Version::V6, None),
        ];
        for (version, compression) in modes {
            let mut client = place.connect().await;
            let call = client::Call::new(version, 9);
            client.put(|out| client::options(out, call));
            client.flush().await;
            let options = client.receive().await;
            assert_eq!((options.version, options.stream), (version, 9));
            assert!(matches!(options.body, Body::Supported(options) if options.len() == 3));
            let driver = ("DRIVER_NAME", "tests");
            client.startup_with(version, compression, &[driver]).await;
            assert_eq!(cell(&client.query("driver").await), b"tests");
            assert_eq!(cell(&client.query("blob 300000").await), vec![7; 300_000]);
            let answer = client.query("use ks1").await;
            assert_eq!(answer.body, Body::Result(Answer::SetKeyspace("ks1".to_owned())));
            assert_eq!(cell(&client.query("keyspace").await), b"ks1");
            let warned = client.query("warn careful").await;
            assert_eq!(warned.warnings.len(), usize::from(version >= Version::V4));
            // OPTIONS any time
            let call = client.call(7);
            client.put(|out| client::options(out, call));
            client.flush().await;
            assert!(matches!(client.receive().await.body, Body::Supported(_)));
            // a second STARTUP
            client.put(|out| client::startup(out, call, &[("CQL_VERSION", "3.0.0")]));
            client.flush().await;
            let refused = client.receive().await;
            assert_eq!(
                error(&refused),
                "Unexpected message STARTUP, the connection is already initialized"
            );
        }
        place.until(|place| place.server.connections() == 0).await;
        assert_eq!(place.client_metric("connectedNativeClients"), 0);
        assert_eq!(place.metric("CQL", "RegularStatementsExecuted"), 40);
        Ok(())
    });
}

#[test]
fn statements_before_startup_are_refused_and_end_the_connection() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        for version in [Version::V3, Version::V4, Version::V5] {
            let mut client = place.connect().await;
            client.version = version;
            client.put_query(77, "void");
            client.flush().await;
            let refused = client.receive().await;
            assert_eq!((refused.version, refused.stream), (version, 77));
            assert_eq!(error(&refused), "Unexpected message QUERY, expecting STARTUP or OPTIONS");
            assert!(client.is_closed().await);
        }
        assert_eq!(place.client_metric("ProtocolException"), 3);
        // nor is a STARTUP that cannot be read forgiven
        let mut client = place.connect().await;
        client.send_raw(&[4, 0, 0, 7, 1, 0, 0, 0, 3, 0, 5, b'x']).await;
        assert!(error(&client.receive().await).starts_with("Not enough bytes"));
        assert!(client.is_closed().await);
        Ok(())
    });
}

#[test]
fn startup_options_are_checked() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let cases: [(&[(&str, &str)], &str); 5] = [
            (&[], "Missing value CQL_VERSION in STARTUP message"),
            (
                &[("CQL_VERSION", "2.0.0")],
                "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= \
                 3.0.0)",
            ),
            (&[("CQL_VERSION", "x")], "Invalid version value: x"),
            (
                &[("CQL_VERSION", "3.0.0"), ("COMPRESSION", "ZIP")],
                "Unknown compression algorithm: zip",
            ),
            (
                &[("CQL_VERSION", "3.0.0"), ("COMPRESSION", "snappy")],
                "Snappy compression is not supported in protocol V5",
            ),
        ];
        for (options, expected) in cases {
            let mut client = place.connect().await;
            let call = client.call(4);
            client.put(|out| client::startup(out, call, options));
            client.flush().await;
            assert_eq!(error(&client.receive().await), expected);
        }
        Ok(())
    });
}

#[test]
fn unknown_versions_are_told_the_known_ones() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut client = place.connect().await;
        client.send_raw(&[0x42, 0, 0, 5, 5, 0, 0, 0, 0]).await;
        let refused = client.receive().await;
        assert_eq!((refused.version, refused.stream), (Version::V5, 5));
        assert!(error(&refused).starts_with("Invalid or unsupported protocol version (66)"));
        // and may try again, as drivers do
        client.startup(Version::V4, None).await;
        let strict = Settings { allow_older_protocols: false, ..settings() };
        let place = Place::new(&env, strict);
        let mut client = place.connect().await;
        client.version = Version::V4;
        let call = client.call(1);
        client.put(|out| client::options(out, call));
        client.flush().await;
        assert_eq!(error(&client.receive().await), "Rejecting Protocol Version 4/v4 < 5/v5.");
        client.startup(Version::V5, None).await;
        Ok(())
    });
}

#[test]
fn authentication_comes_before_statements() {
    both(1, |env, _| async move {
        let mock = Mock { password: Some("secret"), ..Mock::default() };
        let place = Place::with(&env, settings(), mock);
        for version in [Version::V4, Version::V5] {
            let mut client = place.connect().await;
            client.version = version;
            let call = client.call(1);
            client.put(|out| client::startup(out, call, &[("CQL_VERSION", "3.0.0")]));
            client.flush().await;
            let asked = client.receive().await;
            assert!(matches!(asked.body, Body::Authenticate(class) if class.contains("Password")));
            client.start(Started { version, compression: None });
            let early = client.query("void").await;
            assert_eq!(error(&early), "Unexpected message QUERY, expecting SASL_RESPONSE");
            for (token, ok) in [(b"wrong!", false), (b"secret", true)] {
                client.put(|out| client::auth_response(out, call, token));
                client.flush().await;
                match client.receive().await.body {
                    Body::AuthSuccess(None) => assert!(ok),
                    Body::Error(error) => {
                        assert!(!ok);
                        assert_eq!(error.detail, ErrorDetail::BadCredentials);
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(cell(&client.query("user").await), b"cassandra");
            assert_eq!(cell(&client.query("blob 200000").await).len(), 200_000);
        }
        assert_eq!(place.client_metric("AuthSuccess"), 2);
        assert_eq!(place.client_metric("AuthFailure"), 2);
        Ok(())
    });
}

#[test]
fn handshakes_end_in_time_and_are_bounded() {
    both(1, |env, _| async move {
        let short = Duration::from_millis(200);
        let limited = Settings { handshake_timeout: short, max_handshakes: 3, ..settings() };
        let place = Place::new(&env, limited);
        let mut ready = place.connect().await;
        ready.startup(Version::V5, None).await;
        let mut half_open = Vec::new();
        for n in 1..=5 {
            half_open.push(place.connect().await);
            place.until(|place| place.client_metric("HandshakesEvicted") >= n - 3).await;
        }
        // the two oldest made room
        assert!(half_open[0].is_closed().await);
        assert!(half_open[1].is_closed().await);
        half_open[4].startup(Version::V4, None).await;
        place.until(|place| place.client_metric("HandshakeTimeouts") == 2).await;
        assert!(half_open[2].is_closed().await);
        assert_eq!(cell(&half_open[4].query("echo 0 here").await), b"here");
        assert_eq!(cell(&ready.query("echo 0 here").await), b"here");
        Ok(())
    });
}

#[test]
fn connections_are_bounded() {
    both(1, |env, _| async move {
        let place = Place::new(&env, Settings { max_connections: Some(2), ..settings() });
        let mut first = place.connect().await;
        first.startup(Version::V5, None).await;
        let mut second = place.connect().await;
        second.startup(Version::V5, None).await;
        assert!(place.connect().await.is_closed().await);
        assert_eq!(place.client_metric("ConnectionsRefused"), 1);
        drop(first);
        place.until(|place| place.server.connections() == 1).await;
        place.connect().await.startup(Version::V5, None).await;
        let place = Place::new(&env, Settings { max_connections_per_ip: Some(1), ..settings() });
        let mut only = place.connect().await;
        only.startup(Version::V5, None).await;
        assert!(place.connect().await.is_closed().await);
        assert_eq!(place.client_metric("ConnectionsRefusedPerIp"), 1);
        Ok(())
    });
}

#[test]
fn registering_checks_the_events() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut client = place.connect().await;
        client.startup(Version::V3, None).await;
        let call = client.call(5);
        client.put(|out| client::register(out, call, &[EventType::TraceComplete]));
        client.flush().await;
        assert_eq!(
            error(&client.receive().await),
            "Event TRACE_COMPLETE not valid for protocol version 3/v3"
        );
        assert_eq!(place.hub.registrations(), 0);
        Ok(())
    });
}
