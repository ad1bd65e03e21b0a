//! Requests to the nodes of a ring, from outside: each ends in time, whatever becomes of the node.

use std::cell::OnceCell;
use std::time::Duration;

use cluster::{Answer, Page, Request};
use env::sync::oneshot;
use env::{Class, Env};
use protocol::{Consistency, PagingState, QueryOptions, Version};

use super::member::Way;

/// What a client gives a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// A request that has not ended by then never will.
const LIMIT: Duration = Duration::from_secs(30);

/// How a request ended otherwise than with an answer.
#[derive(Clone, Debug)]
pub enum Failed {
    /// The node says so. It may be done for all that.
    Error(String),
    /// The node is gone.
    Gone,
    /// Nobody ever answers.
    Stuck,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text.
    pub text: String,
    /// Its level.
    pub level: Consistency,
    /// Rows of a page.
    pub page_size: Option<i32>,
    /// Where the page before ended.
    pub state: Option<Vec<u8>>,
}

impl Statement {
    /// Without pages.
    pub fn new(level: Consistency, text: impl Into<String>) -> Self {
        Self { text: text.into(), level, page_size: None, state: None }
    }
}

/// Asks a node.
///
/// # Errors
/// See [`Failed`].
pub async fn ask(clients: &Env, way: &Way, statement: Statement) -> Result<Answer, Failed> {
    let (sender, receiver) = oneshot();
    let (env, shard) = (way.env.clone(), way.shard.clone());
    way.env.spawn(Class::Statement, async move {
        let Statement { text, level, page_size, state } = statement;
        let state = state.as_deref().and_then(|state| PagingState::parse(state, Version::V5).ok());
        let options = QueryOptions {
            consistency: level,
            page_size,
            paging_state: state,
            ..QueryOptions::default()
        };
        let request = Request {
            keyspace: None,
            version: Version::V5,
            options: &options,
            deadline: env.now() + PATIENCE,
            user: None,
            tracing: None,
            guard: OnceCell::new(),
            observed: None,
            is_shard_aware: false,
        };
        // nobody may be there to hear it
        let _ = sender.send(shard.coordinator().query(&text, request).await.result);
    });
    match clients.timeout(LIMIT, receiver).await {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Ok(Err(error))) => Err(Failed::Error(error.message)),
        Ok(Err(_)) => Err(Failed::Gone),
        Err(_) => Err(Failed::Stuck),
    }
}

/// The cells of a page, row by row.
pub fn rows(page: &Page) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut cells = Vec::new();
    let mut left = &page.cells[..];
    while let Some((length, rest)) = left.split_first_chunk() {
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let (cell, rest) = rest.split_at(length.unwrap_or(0).min(rest.len()));
        cells.push(length.map(|_| cell.to_vec()));
        left = rest;
    }
    let width = cells.len() / (page.rows as usize).max(1);
    cells.chunks(width.max(1)).map(<[_]>::to_vec).collect()
}

/// A number of a cell: `int`, `bigint` or `counter`.
pub fn number(cell: Option<&Option<Vec<u8>>>) -> Option<i64> {
    let bytes = cell?.as_deref()?;
    match *bytes {
        [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
        _ => bytes.try_into().ok().map(i64::from_be_bytes),
    }
}
