//! Requests and answers: order, streams, the fast path, events.

use std::collections::BTreeSet;

use protocol::client::{self, Answer, BatchItem, BatchRequest, Body, Parameters};
use protocol::{
    BatchKind, Compression, Event, EventType, StatusChange, TopologyChange, Version, prepared_id,
};
use server::Settings;

use crate::client::{Client, cell, error};
use crate::mock::{metadata, schema_change};
use crate::world::{Place, both, real, settings};

async fn pipeline(client: &mut Client, requests: i32) {
    let mut waiting = BTreeSet::new();
    let mut next = 0;
    while next < requests || !waiting.is_empty() {
        while next < requests && waiting.len() < 20_000 {
            let stream = (next % 30_000) as i16;
            client.put_query(stream, &format!("echo {} {next}", next % 4));
            waiting.insert((stream, next.to_string()));
            next += 1;
            if next % 500 == 0 {
                break;
            }
        }
        client.flush().await;
        for _ in 0..waiting.len().min(400) {
            let answer = client.receive().await;
            let text = String::from_utf8(cell(&answer)).unwrap();
            assert!(waiting.remove(&(answer.stream, text)), "stream {}", answer.stream);
        }
    }
}

#[test]
fn ten_thousand_pipelined_requests_are_answered_on_their_streams() {
    real(1, |env, _| async move {
        let place = Place::new(&env, settings());
        for (version, compression) in
            [(Version::V4, None), (Version::V5, None), (Version::V5, Some(Compression::Lz4))]
        {
            let mut client = place.connect().await;
            client.startup(version, compression).await;
            pipeline(&mut client, 10_000).await;
        }
        assert_eq!(place.metric("CQL", "RegularStatementsExecuted"), 30_000);
        assert_eq!(place.client_metric("RequestsInFlight"), 0);
        assert_eq!(place.client_metric("RequestsSize"), 0);
        Ok(())
    });
}

#[test]
fn pipelined_requests_of_several_clients() {
    both(1, |env, _| async move {
        let place = Place::new(&env, Settings { max_requests_per_connection: 50, ..settings() });
        for (version, compression) in
            [(Version::V3, None), (Version::V5, None), (Version::V5, Some(Compression::Lz4))]
        {
            let mut client = place.connect().await;
            client.startup(version, compression).await;
            pipeline(&mut client, 1_000).await;
        }
        Ok(())
    });
}

#[test]
fn a_slow_request_does_not_hold_up_the_next() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut client = place.connect().await;
        client.startup(Version::V5, None).await;
        client.put_query(10, "wait first");
        client.put_query(11, "echo 0 second");
        client.flush().await;
        let second = client.receive().await;
        assert_eq!((second.stream, cell(&second)), (11, b"second".to_vec()));
        place.mock.gate.notify_all();
        let first = client.receive().await;
        assert_eq!((first.stream, cell(&first)), (10, b"first".to_vec()));
        Ok(())
    });
}

#[test]
fn prepared_statements_that_wait_and_that_do_not() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        for version in [Version::V4, Version::V5] {
            let mut client = place.connect().await;
            client.startup(version, None).await;
            let call = client.call(5);
            let held = metadata().id();
            let skipping = Parameters { skip_metadata: true, ..Parameters::default() };
            for text in ["echo 0 at once", "echo 3 later"] {
                client.put(|out| client::prepare(out, call, text, None));
                client.flush().await;
                let Body::Result(Answer::Prepared(prepared)) = client.receive().await.body else {
                    panic!("not prepared")
                };
                assert_eq!(prepared.id, prepared_id(None, text));
                let execute = |out: &mut Vec<u8>| {
                    client::execute(out, call, &prepared.id, &held, &skipping);
                };
                client.put(execute);
                client.flush().await;
                let answer = client.receive().await;
                assert_eq!(
                    cell(&answer),
                    text.rsplit_once(['0', '3']).unwrap().1.trim_start().as_bytes()
                );
            }
            client.put(|out| client::execute(out, call, &[1; 16], &held, &skipping));
            client.flush().await;
            assert!(error(&client.receive().await).starts_with("Prepared query with ID 0101"));
            let item = (BatchItem::Text("x".to_owned()), Vec::new());
            let batch = BatchRequest {
                kind: BatchKind::Logged,
                items: vec![item.clone(), item],
                parameters: Parameters::default(),
            };
            client.put(|out| client::batch(out, call, &batch));
            client.flush().await;
            assert_eq!(cell(&client.receive().await), [2]);
        }
        assert_eq!(place.metric("CQL", "PreparedStatementsExecuted"), 4);
        Ok(())
    });
}

#[test]
fn malformed_bodies_are_answered() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut client = place.connect().await;
        client.startup(Version::V4, None).await;
        // QUERY whose text is longer than its body: the connection goes on
        for _ in 0..3 {
            client.send_raw(&[4, 0, 0, 6, 7, 0, 0, 0, 5, 0, 0, 1, 0, b'x']).await;
            let refused = client.receive().await;
            assert_eq!(refused.stream, 6);
            assert!(error(&refused).starts_with("Not enough bytes to read an UTF8"));
        }
        assert_eq!(cell(&client.query("echo 0 on").await), b"on");
        // from version 5 on the second in a row within a segment ends it
        let mut client = place.connect().await;
        client.startup(Version::V5, None).await;
        for _ in 0..3 {
            client.put(|out| out.extend([5, 0, 0, 6, 7, 0, 0, 0, 5, 0, 0, 1, 0, b'x']));
        }
        client.flush().await;
        for _ in 0..2 {
            assert!(error(&client.receive().await).starts_with("Not enough bytes"));
        }
        assert!(client.is_closed().await);
        Ok(())
    });
}

#[test]
fn corrupt_segments_end_the_connection() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut client = place.connect().await;
        client.startup(Version::V5, None).await;
        client.send_raw(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).await;
        let refused = client.receive().await;
        assert!(error(&refused).starts_with("invalid, unrecoverable CRC mismatch"));
        assert!(client.is_closed().await);
        place.until(|place| place.server.connections() == 0).await;
        Ok(())
    });
}

#[test]
fn oversized_messages_are_refused_and_passed_over() {
    both(1, |env, _| async move {
        let limit = 300_000;
        let small = Settings { max_frame_size: limit, max_message_size: limit, ..settings() };
        let place = Place::new(&env, small);
        let long = "x".repeat(400_000);
        let mut client = place.connect().await;
        client.startup(Version::V4, None).await;
        client.put_query(8, &long);
        client.put_query(9, "echo 0 next");
        client.flush().await;
        let refused = client.receive().await;
        assert_eq!(refused.stream, 8);
        assert!(error(&refused).starts_with("Request is too big: length 4000"));
        assert!(error(&refused).ends_with("exceeds maximum allowed length 300000."));
        assert_eq!(cell(&client.receive().await), b"next");
        let mut client = place.connect().await;
        client.startup(Version::V5, None).await;
        client.put_query(8, &long);
        client.put_query(9, "echo 0 next");
        client.flush().await;
        let refused = client.receive().await;
        assert!(error(&refused).ends_with("exceeds allowed maximum of 300000 bytes"));
        assert_eq!(cell(&client.receive().await), b"next");
        // what fits, in several segments
        let fits = format!("echo 0 {}", "y".repeat(200_000));
        assert_eq!(cell(&client.query(&fits).await).len(), 200_000);
        // strangers are lent less
        let mut stranger = place.connect().await;
        stranger.send_raw(&[4, 0, 0, 1, 1, 0, 2, 0, 0]).await;
        let refused = stranger.receive().await;
        assert_eq!(
            error(&refused),
            "Request is too big: length 131081 exceeds maximum allowed length 65536."
        );
        Ok(())
    });
}

#[test]
fn events_reach_those_who_registered_in_their_versions_form() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut clients = Vec::new();
        for version in [Version::V3, Version::V4, Version::V5] {
            let mut client = place.connect().await;
            client.startup(version, None).await;
            client.register(&[EventType::SchemaChange, EventType::StatusChange]).await;
            clients.push(client);
        }
        let mut deaf = place.connect().await;
        deaf.startup(Version::V5, None).await;
        assert_eq!(place.hub.registrations(), 3);
        let node = "10.1.2.3:9042".parse().unwrap();
        place.hub.publish(&Event::Topology(TopologyChange::NewNode, node));
        place.hub.publish(&Event::Status(StatusChange::Up, node));
        for client in &mut clients {
            let event = client.receive().await;
            assert_eq!(event.stream, -1);
            assert_eq!(event.body, Body::Event(Event::Status(StatusChange::Up, node)));
        }
        // the one who changes the schema reads the answer first
        let [old, middle, new] = &mut clients[..] else { panic!() };
        let answer = new.query("ddl").await;
        assert_eq!(answer.body, Body::Result(Answer::SchemaChange(schema_change())));
        let event = Body::Event(Event::Schema(schema_change()));
        assert_eq!(new.receive().await.body, event);
        assert_eq!(middle.receive().await.body, event);
        let Body::Event(Event::Schema(change)) = old.receive().await.body else { panic!() };
        assert_eq!(change.target, protocol::Target::Keyspace);
        assert_eq!(cell(&deaf.query("echo 0 nothing").await), b"nothing");
        drop(clients);
        place.until(|place| place.hub.registrations() == 0).await;
        Ok(())
    });
}
