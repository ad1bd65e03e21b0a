//! What a request takes up while it lasts.

use std::rc::Rc;

use crate::shard::connection::Connection;

/// A request's place on its connection and in the shard's budget, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pub connection: Rc<Connection>,
    bytes: u64,
}

impl Place {
    pub fn take(connection: &Rc<Connection>, bytes: u64) -> Self {
        let shard = &connection.shard;
        shard.in_flight.take(&connection.account, bytes);
        shard.tally.in_flight_bytes.set(i64::try_from(shard.in_flight.all()).unwrap_or(i64::MAX));
        shard.request_started();
        connection.in_flight.set(connection.in_flight.get() + 1);
        Self { connection: Rc::clone(connection), bytes }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let shard = &self.connection.shard;
        shard.in_flight.give_back(&self.connection.account, self.bytes);
        shard.tally.in_flight_bytes.set(i64::try_from(shard.in_flight.all()).unwrap_or(i64::MAX));
        self.connection.request_finished();
        shard.bytes_given_back();
        shard.request_finished();
    }
}
