//! How connections and servers end.

use std::time::Duration;

use env::{Class, TcpStream};
use protocol::{ErrorDetail, Version, client::Body};

use crate::client::{Client, cell, error};
use crate::world::{Place, both, settings};

#[test]
fn requests_go_on_when_their_client_has_gone() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut client = place.connect().await;
        client.startup(Version::V5, None).await;
        for n in 0..3 {
            client.put_query(n, "wait x");
        }
        client.flush().await;
        place.until(|place| place.mock.waiting.get() == 3).await;
        drop(client);
        place.until(|place| place.server.connections() == 0).await;
        assert_eq!(place.client_metric("RequestsInFlight"), 3);
        place.mock.gate.notify_all();
        place.until(|place| place.mock.finished.get() == 3).await;
        assert_eq!(place.client_metric("AnswersDropped"), 3);
        assert_eq!(place.client_metric("RequestsInFlight"), 0);
        Ok(())
    });
}

#[test]
fn draining_finishes_what_is_in_flight() {
    both(1, |env, _| async move {
        let place = std::rc::Rc::new(Place::new(&env, settings()));
        let address = place.server.address();
        let mut client = Client::ready(&env, address, Version::V5).await;
        client.put_query(1, "wait x");
        client.flush().await;
        place.until(|place| place.mock.waiting.get() == 1).await;
        let draining = std::rc::Rc::clone(&place);
        let drain = env.spawn_task(Class::Admin, async move {
            draining.server.drain(Duration::from_secs(20)).await;
        });
        env.sleep(Duration::from_millis(5)).await;
        let refused = client.query("void").await;
        assert_eq!(error(&refused), "Server is shutting down");
        assert!(
            matches!(refused.body, Body::Error(error) if error.detail == ErrorDetail::Overloaded)
        );
        assert!(TcpStream::connect(&env, address).await.is_err());
        place.mock.gate.notify_all();
        assert_eq!(cell(&client.receive().await), b"x");
        assert!(client.is_closed().await);
        drop(client);
        drain.await;
        assert_eq!(place.server.connections(), 0);
        Ok(())
    });
}

#[test]
fn draining_cuts_off_what_takes_too_long() {
    both(1, |env, _| async move {
        let place = Place::new(&env, settings());
        let mut client = Client::ready(&env, place.server.address(), Version::V4).await;
        client.put_query(1, "wait x");
        client.flush().await;
        place.until(|place| place.mock.waiting.get() == 1).await;
        place.server.drain(Duration::from_millis(50)).await;
        assert!(client.is_closed().await);
        place.until(|place| place.server.connections() == 0).await;
        place.mock.gate.notify_all();
        place.until(|place| place.mock.finished.get() == 1).await;
        Ok(())
    });
}
