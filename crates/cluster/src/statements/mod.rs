//! Statements: texts planned, and those that were prepared.

mod kept;

use std::cell::RefCell;
use std::rc::Rc;

use cql::{Prepared, redacted};
use env::Class;
use protocol::{ErrorResponse, prepared_id};
use schema::Schema;
use storage::Trace;
use storage::shards::Remote;

use crate::answer::{cql_error, parse_error};
use crate::own_cql::OwnCql;
use crate::prepared::{Entry, PreparedCache};
use crate::shard_context::ShardContext;

/// Bytes of prepared statements that a shard keeps where the configuration does not say.
const PREPARED_BYTES: u64 = 10 << 20;
/// Bytes of a text from which on it is parsed and planned on a helper thread: a byte of the dearest
/// ones costs 200 ns.
const LONG_TEXT: usize = 8 << 10;

/// Plans statements, and keeps those that clients prepare.
pub struct Statements {
    shard: Rc<ShardContext>,
    others: Remote<Statements>,
    own_cql: Rc<OwnCql>,
    cache: RefCell<PreparedCache>,
}

/// A statement that was prepared, and what is to follow.
pub(crate) struct NewlyPrepared {
    pub entry: Rc<Entry>,
    /// Was it not prepared here, under the present schema?
    pub is_new: bool,
    /// Was it planned here under the present schema before?
    pub was_current: bool,
}

impl Statements {
    pub(crate) fn new(
        shard: &Rc<ShardContext>,
        others: Remote<Self>,
        own_cql: &Rc<OwnCql>,
    ) -> Rc<Self> {
        let bytes = shard.config.prepared_statements_cache_size.unwrap_or(PREPARED_BYTES);
        Rc::new(Self {
            shard: Rc::clone(shard),
            others,
            own_cql: Rc::clone(own_cql),
            cache: RefCell::new(PreparedCache::new(bytes as usize)),
        })
    }

    /// Number of prepared statements that this shard keeps, and of those that it evicted.
    pub fn stats(&self) -> (usize, u64) {
        self.cache.borrow().stats()
    }

    /// Bytes of prepared statements that this shard keeps at most.
    pub fn limit(&self) -> usize {
        self.cache.borrow().limit()
    }

    /// Parses and plans a text under the present schema, whose epoch is given too; a long one where
    /// it keeps nobody waiting.
    pub(crate) async fn plan(
        &self,
        text: &str,
        keyspace: Option<&str>,
        is_shard_aware: bool,
        trace: &Trace,
    ) -> Result<(Prepared, u64), ErrorResponse> {
        trace.note(&self.shard.env, || format!("Parsing {}", redacted(text)));
        let schema = self.shard.schema();
        let epoch = schema.epoch();
        let planned = if text.len() <= LONG_TEXT {
            plan_under(text, keyspace, is_shard_aware, &schema)
        } else {
            let (text, keyspace) = (text.to_owned(), keyspace.map(str::to_owned));
            let plan = move || plan_under(&text, keyspace.as_deref(), is_shard_aware, &schema);
            Box::pin(self.shard.env.helper(plan)).await
        };
        trace.note(&self.shard.env, || "Preparing statement".to_owned());
        Ok((planned?, epoch))
    }

    /// Prepares a statement on this shard.
    ///
    /// # Errors
    /// If it makes no sense.
    pub(crate) async fn prepare(
        &self,
        text: &str,
        keyspace: Option<&str>,
        is_shard_aware: bool,
    ) -> Result<NewlyPrepared, ErrorResponse> {
        let known = self.cache.borrow().get(&prepared_id(keyspace, text));
        // one whose table has changed was forgotten, though this shard has it still
        let is_new = known.as_ref().is_none_or(|entry| !entry.is_of(&self.shard.schema()));
        let was_current = known.is_some_and(|entry| entry.epoch == self.shard.schema().epoch());
        let entry = self.prepare_here(text, keyspace, is_shard_aware).await?;
        Ok(NewlyPrepared { entry, is_new, was_current })
    }

    /// Has the other shards prepare it too, and the node remember it, if it is new.
    pub(crate) async fn spread(&self, prepared: &NewlyPrepared, is_shard_aware: bool) {
        let entry = &prepared.entry;
        let me = self.shard.env.shard();
        for shard in (0..self.others.count()).filter(|shard| *shard != me) {
            let text = entry.text.to_string();
            let keyspace = entry.keyspace.as_deref().map(str::to_owned);
            let prepare = async move |other: Rc<Self>| {
                // The schema may have changed meanwhile; then the shard answers UNPREPARED and the
                // driver asks again.
                let _ = other.prepare_here(&text, keyspace.as_deref(), is_shard_aware).await;
                // who was asked to prepare it forgets what it took the place of
                other.cache.borrow_mut().take_evicted();
            };
            let _ = self.others.call_async(shard, Class::Statement, prepare).await;
        }
        let evicted = self.cache.borrow_mut().take_evicted();
        if prepared.is_new || !evicted.is_empty() {
            let new = prepared.is_new.then_some(&**entry);
            Box::pin(self.keep_or_forget(new, &evicted)).await;
        }
    }

    /// Keeps a statement that is new, and forgets others.
    async fn keep_or_forget(&self, new: Option<&Entry>, gone: &[Rc<Entry>]) {
        if let Some(entry) = new {
            self.keep_statement(entry).await;
        }
        self.forget_statements(gone).await;
    }

    async fn prepare_here(
        &self,
        text: &str,
        keyspace: Option<&str>,
        is_shard_aware: bool,
    ) -> Result<Rc<Entry>, ErrorResponse> {
        let planned = self.plan(text, keyspace, is_shard_aware, &Trace::default()).await;
        let (prepared, epoch) = planned?;
        Ok(self.keep_prepared(text, keyspace, prepared, epoch))
    }

    fn keep_prepared(
        &self,
        text: &str,
        keyspace: Option<&str>,
        prepared: Prepared,
        epoch: u64,
    ) -> Rc<Entry> {
        let entry = Rc::new(Entry::new(text, keyspace, prepared, epoch));
        self.cache.borrow_mut().put(&entry);
        entry
    }

    /// The statement of an id, planned under the present schema.
    pub(crate) fn entry(&self, id: &[u8]) -> Result<Rc<Entry>, ErrorResponse> {
        let entry = self.cache.borrow().get(id);
        let entry = entry.ok_or_else(|| ErrorResponse::unprepared(id))?;
        if entry.epoch == self.shard.schema().epoch() {
            return Ok(entry);
        }
        // What no longer makes sense, or was prepared for other columns, is no longer prepared, as
        // in Cassandra: a client that sent values of the old types, or reads cells by the old
        // columns, would be wrong.
        let schema = self.shard.schema();
        if entry.is_of(&schema)
            // who prepared it was allowed its words
            && let Ok(prepared) = plan_under(&entry.text, entry.keyspace.as_deref(), true, &schema)
        {
            let (text, keyspace) = (&entry.text, entry.keyspace.as_deref());
            return Ok(self.keep_prepared(text, keyspace, prepared, schema.epoch()));
        }
        self.cache.borrow_mut().remove(&entry);
        Err(ErrorResponse::unprepared(id))
    }
}

fn plan_under(
    text: &str,
    keyspace: Option<&str>,
    is_shard_aware: bool,
    schema: &Schema,
) -> Result<Prepared, ErrorResponse> {
    let parse = if is_shard_aware { cql::parse_of_shard_aware } else { cql::parse };
    let parsed = parse(text).map_err(|error| parse_error(&error))?;
    cql::prepare(&parsed, keyspace, schema).map_err(cql_error)
}
