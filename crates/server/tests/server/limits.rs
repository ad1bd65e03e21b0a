//! Back-pressure and overload.

use std::time::Duration;

use protocol::client::Body;
use protocol::{ErrorDetail, Event, EventType, StatusChange, Version};
use server::Settings;

use crate::client::{cell, error};
use crate::world::{Place, both, real, settings};

#[test]
fn a_client_that_does_not_read_is_not_read() {
    both(1, |env, _| async move {
        let limit = 64 << 10;
        let place = Place::new(&env, Settings { max_unsent: limit, ..settings() });
        let mut client = place.connect().await;
        client.startup(Version::V5, None).await;
        let requests = 400;
        for n in 0..requests {
            client.put_query(n, "blob 50000");
        }
        client.flush().await;
        place.until(|place| place.client_metric("RequestsInFlight") > 0).await;
        env.sleep(Duration::from_millis(50)).await;
        let started = place.mock.started.get();
        assert!(started < requests as usize, "{started} requests ran for nobody");
        let mut other = place.connect().await;
        other.startup(Version::V4, None).await;
        assert_eq!(cell(&other.query("echo 1 fine").await), b"fine");
        for _ in 0..requests {
            assert_eq!(cell(&client.receive().await).len(), 50_000);
        }
        // of one answer so much is left unread that nothing more is read
        client.put_query(1, "blob 16000000");
        client.put_query(2, "echo 1 later");
        client.flush().await;
        place.until(|place| place.client_metric("PausedConnections") == 1).await;
        assert_eq!(place.client_metric("ConnectionPausedByUnreadAnswers"), 1);
        assert_eq!(cell(&client.receive().await).len(), 16_000_000);
        assert_eq!(cell(&client.receive().await), b"later");
        place.until(|place| place.client_metric("PausedConnections") == 0).await;
        Ok(())
    });
}

#[test]
fn what_nobody_wants_is_read_at_leisure() {
    both(1, |env, _| async move {
        let place = Place::new(&env, Settings { max_frame_size: 64 << 10, ..settings() });
        let mut client = place.connect().await;
        client.startup(Version::V4, None).await;
        let length = 4_u32 << 20;
        let mut message = vec![4, 0, 0, 1, 7];
        message.extend_from_slice(&length.to_be_bytes());
        message.resize(message.len() + length as usize, 0);
        let start = env.now();
        client.send_raw(&message).await;
        assert!(error(&client.receive().await).contains("exceeds maximum"));
        assert_eq!(cell(&client.query("echo 1 fine").await), b"fine");
        // 64 chunks of 64 KiB, 2 ms of rest after each but the last
        assert!(env.now() - start >= Duration::from_millis(63 * 2));
        Ok(())
    });
}

#[test]
fn requests_of_a_connection_are_bounded() {
    both(1, |env, _| async move {
        let place = Place::new(&env, Settings { max_requests_per_connection: 10, ..settings() });
        let mut client = place.connect().await;
        client.startup(Version::V4, None).await;
        for n in 0..35 {
            client.put_query(n, "wait x");
        }
        client.flush().await;
        for n in [10, 20, 30, 35] {
            place.until(|place| place.mock.started.get() >= n).await;
            assert_eq!(place.mock.started.get(), n);
            assert!(place.mock.waiting.get() <= 10);
            place.mock.gate.notify_all();
        }
        for _ in 0..35 {
            assert_eq!(cell(&client.receive().await), b"x");
        }
        assert!(place.client_metric("ConnectionPausedByRequests") > 0);
        Ok(())
    });
}

/// So many requests that have not ended are as much as a shard takes on.
const UNDER_WAY: usize = 1024;

#[test]
fn more_than_a_shard_takes_on_waits_in_lines() {
    both(1, |env, _| async move {
        let patient = Settings { queue_wait: Duration::from_secs(3600), ..settings() };
        let place = Place::new(&env, patient);
        let mut greedy = place.connect().await;
        greedy.startup(Version::V4, None).await;
        let all = UNDER_WAY + 100;
        for n in 0..all {
            greedy.put_query(n as i16, "wait x");
        }
        greedy.flush().await;
        place.until(|place| place.mock.started.get() == UNDER_WAY).await;
        // who has nothing under way does not wait
        let mut other = place.connect().await;
        other.startup(Version::V4, None).await;
        assert_eq!(cell(&other.query("echo 1 fine").await), b"fine");
        assert_eq!(place.mock.started.get(), UNDER_WAY + 1);
        // nor does it wait behind all that somebody else has: lines have their turn
        other.put_query(1, "wait y");
        other.put_query(2, "wait z");
        other.flush().await;
        place.until(|place| place.mock.waiting.get() == UNDER_WAY + 1).await;
        place.mock.gate.notify_all();
        place.until(|place| place.mock.waiting.get() == 100 + 1).await;
        place.mock.gate.notify_all();
        for _ in 0..all {
            assert_eq!(cell(&greedy.receive().await), b"x");
        }
        let answers = [other.receive().await, other.receive().await];
        assert_eq!(answers.map(|answer| cell(&answer).to_vec()), [b"y".to_vec(), b"z".to_vec()]);
        assert_eq!(place.client_metric("RequestsInFlight"), 0);
        assert_eq!(place.client_metric("TimedOutBeforeProcessing"), 0);
        Ok(())
    });
}

#[test]
fn who_waits_too_long_for_a_turn_is_told() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut greedy = place.connect().await;
        greedy.startup(Version::V4, None).await;
        let begun = env.now();
        for n in 0..UNDER_WAY + 10 {
            greedy.put_query(n as i16, "wait x");
        }
        greedy.flush().await;
        for _ in 0..10 {
            let answer = greedy.receive().await;
            assert!(answer.stream >= UNDER_WAY as i16, "{} had its turn", answer.stream);
            assert_eq!(error(&answer), "Query timed out before it could start");
            assert!(
                matches!(answer.body, Body::Error(error) if error.detail == ErrorDetail::Overloaded)
            );
        }
        // a burst has two seconds
        assert!(env.now() - begun >= Duration::from_secs(2));
        assert_eq!(place.mock.started.get(), UNDER_WAY);
        place.mock.gate.notify_all();
        for _ in 0..UNDER_WAY {
            assert_eq!(cell(&greedy.receive().await), b"x");
        }
        assert_eq!(cell(&greedy.query("echo 1 again").await), b"again");
        assert_eq!(place.client_metric("TimedOutBeforeProcessing"), 10);
        Ok(())
    });
}

#[test]
fn few_that_take_long_run_at_a_time() {
    // slices are used up in no time but a real one
    real(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut greedy = place.connect().await;
        greedy.startup(Version::V4, None).await;
        for n in 0..60 {
            greedy.put_query(n, "spin 100");
        }
        greedy.flush().await;
        place.until(|place| place.mock.spinning.get() > 0).await;
        let mut other = place.connect().await;
        other.startup(Version::V4, None).await;
        assert_eq!(cell(&other.query("echo 1 fine").await), b"fine");
        assert!(place.client_metric("RequestsInFlight") > 0, "it waited for all");
        for _ in 0..60 {
            greedy.receive().await;
        }
        // those that are long, and some of which that is not known yet
        let most = place.mock.most_spinning.get();
        assert!((2..=16).contains(&most), "{most} at a time");
        Ok(())
    });
}

#[test]
fn what_waits_for_a_client_that_has_gone_is_not_started() {
    both(1, |env, _| async move {
        let patient = Settings { queue_wait: Duration::from_secs(3600), ..settings() };
        let place = Place::new(&env, Settings { request_timeout: patient.queue_wait, ..patient });
        let mut greedy = place.connect().await;
        greedy.startup(Version::V4, None).await;
        for n in 0..UNDER_WAY + 10 {
            greedy.put_query(n as i16, "wait x");
        }
        greedy.flush().await;
        let all = UNDER_WAY as i64 + 10;
        place.until(|place| place.client_metric("RequestsInFlight") == all).await;
        place.until(|place| place.mock.started.get() == UNDER_WAY).await;
        drop(greedy);
        place.until(|place| place.client_metric("AnswersDropped") == 10).await;
        place.mock.gate.notify_all();
        place.until(|place| place.client_metric("RequestsInFlight") == 0).await;
        assert_eq!(place.mock.started.get(), UNDER_WAY);
        Ok(())
    });
}

#[test]
fn bytes_in_flight_pause_or_refuse() {
    both(1, |env, _| async move {
        let limited = Settings { max_in_flight: 1000, max_in_flight_per_ip: 500, ..settings() };
        let place = Place::new(&env, limited);
        let long = format!("wait {}", "x".repeat(400));
        for version in [Version::V4, Version::V5] {
            let mut patient = place.connect().await;
            patient.startup(version, None).await;
            let mut picky = place.connect().await;
            picky.startup_with(version, None, &[("THROW_ON_OVERLOAD", "1")]).await;
            patient.put_query(1, &long);
            patient.flush().await;
            place.until(|place| place.mock.waiting.get() == 1).await;
            let refused = picky.query(&long).await;
            let usage = match version {
                Version::V4 => {
                    "Using 412/500 bytes of endpoint limit and 412/1000 bytes of global limit."
                }
                _ => "Endpoint: 415/500 bytes, Global: 415/1000 bytes.",
            };
            assert_eq!(
                error(&refused),
                format!(
                    "Request breached limit on bytes in flight. ({usage})Server is currently in an \
                     overloaded state and cannot accept more requests."
                )
            );
            assert!(
                matches!(refused.body, Body::Error(error) if error.detail == ErrorDetail::Overloaded)
            );
            // who did not ask for errors is let in once and then waits
            patient.put_query(2, &long);
            patient.put_query(3, "echo 0 later");
            patient.flush().await;
            place.until(|place| place.mock.waiting.get() == 2).await;
            place.until(|place| place.client_metric("PausedConnections") == 1).await;
            place.mock.gate.notify_all();
            let mut warnings = 0;
            for _ in 0..3 {
                let answer = patient.receive().await;
                if answer.stream == 2 {
                    warnings = answer.warnings.len();
                    assert!(answer.warnings[0].contains("(Endpoint: 500, Global: 1000)"));
                }
            }
            assert_eq!(warnings, 1);
            assert_eq!(cell(&picky.query("echo 0 now").await), b"now");
        }
        assert_eq!(place.client_metric("RequestDiscarded"), 2);
        assert_eq!(place.client_metric("ConnectionPaused"), 2);
        assert_eq!(place.client_metric("RequestsSize"), 0);
        Ok(())
    });
}

#[test]
fn a_request_that_waited_too_long_is_not_started() {
    both(1, |env, _| async move {
        let hasty = Settings {
            max_requests_per_connection: 1,
            request_timeout: Duration::from_millis(100),
            ..settings()
        };
        let place = Place::new(&env, hasty);
        let mut client = place.connect().await;
        client.startup(Version::V5, None).await;
        client.put_query(1, "wait x");
        client.put_query(2, "echo 0 x");
        client.flush().await;
        place.until(|place| place.mock.waiting.get() == 1).await;
        env.sleep(Duration::from_millis(150)).await;
        place.mock.gate.notify_all();
        assert_eq!(client.receive().await.stream, 1);
        let late = client.receive().await;
        assert_eq!((late.stream, error(&late)), (2, "Query timed out before it could start"));
        assert_eq!(place.client_metric("TimedOutBeforeProcessing"), 1);
        Ok(())
    });
}

#[test]
fn a_client_that_does_not_read_its_events_is_closed() {
    both(1, |env, _| async move {
        let place = Place::new(&env, Settings { max_unsent: 1000, ..settings() });
        let mut client = place.connect().await;
        client.startup(Version::V5, None).await;
        client.register(&[EventType::StatusChange]).await;
        let event = Event::Status(StatusChange::Up, "10.0.0.9:9042".parse().unwrap());
        for n in 0.. {
            place.hub.publish(&event);
            if place.client_metric("EventsUnread") > 0 {
                break;
            }
            assert!(n < 10_000_000);
            if n % 50 == 0 {
                env.yield_now().await;
            }
        }
        place.until(|place| place.server.connections() == 0).await;
        Ok(())
    });
}

#[test]
fn idle_connections_are_closed_and_busy_ones_are_not() {
    both(1, |env, _| async move {
        let idle = Duration::from_millis(200);
        let place = Place::new(&env, Settings { idle_timeout: Some(idle), ..settings() });
        let mut idler = place.connect().await;
        idler.startup(Version::V5, None).await;
        let mut busy = place.connect().await;
        busy.startup(Version::V5, None).await;
        let mut waiting = place.connect().await;
        waiting.startup(Version::V5, None).await;
        waiting.put_query(1, "wait x");
        waiting.flush().await;
        for _ in 0..30 {
            env.sleep(Duration::from_millis(20)).await;
            assert_eq!(cell(&busy.query("echo 0 x").await), b"x");
        }
        place.until(|place| place.client_metric("IdleTimeouts") == 1).await;
        assert!(idler.is_closed().await);
        place.mock.gate.notify_all();
        assert_eq!(cell(&waiting.receive().await), b"x");
        Ok(())
    });
}

#[test]
fn requests_a_second_pause_or_refuse() {
    both(1, |env, _| async move {
        let place = Place::new(&env, Settings { max_requests_per_second: Some(20), ..settings() });
        let mut picky = place.connect().await;
        picky.startup_with(Version::V5, None, &[("THROW_ON_OVERLOAD", "1")]).await;
        let mut refused = Vec::new();
        for _ in 0..100 {
            if let Body::Error(error) = picky.query("void").await.body {
                assert_eq!(error.detail, ErrorDetail::Overloaded);
                refused.push(error.message);
            }
        }
        let words = "Request breached global limit of 20 requests/second. Server is currently in an \
                     overloaded state and cannot accept more requests.";
        assert!(refused.iter().all(|message| message == words), "{refused:?}");
        assert!((50..=99).contains(&refused.len()), "{} refused", refused.len());
        let discarded = place.client_metric("RequestDiscarded");
        assert_eq!(discarded as usize, refused.len());

        let mut patient = place.connect().await;
        patient.startup(Version::V5, None).await;
        let started = env.now();
        for n in 0..10 {
            patient.put_query(n, "void");
        }
        patient.flush().await;
        let mut warned = 0;
        for _ in 0..10 {
            let response = patient.receive().await;
            assert!(!matches!(response.body, Body::Error(_)));
            warned += usize::from(response.warnings.iter().any(|w| w.ends_with("backpressure.")));
        }
        assert!(env.now().since(started) >= Duration::from_millis(350), "nobody waited");
        assert!(warned >= 8, "{warned} warned");
        assert!(place.client_metric("ConnectionPausedByRate") > 0);
        Ok(())
    });
}
