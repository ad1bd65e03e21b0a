//! `system.prepared_statements`: what was prepared here, so that it is after the next start too
//! (`QueryProcessor.preloadPreparedStatements`, `SystemKeyspace.writePreparedStatement`).
//!
//! At a start all shards prepare the kept statements again, before the node serves clients.

use std::rc::Rc;

use cql::Plan;
use env::Class;
use protocol::{ErrorResponse, Id, prepared_id};
use schema::Schema;
use types::hex::to_hex;

use super::Statements;
use crate::internal::{self, Internal, Times};
use crate::prepared::Entry;

const TABLE: &str = "prepared_statements";
/// Rows that are read and prepared at a time.
const PAGE: usize = 100;

/// A row: what is to be prepared, and in which keyspace.
#[derive(Clone)]
struct Kept {
    id: Id,
    keyspace: Option<String>,
    text: String,
}

/// The ids under which a statement is kept, each with its keyspace. One that names no keyspace has
/// the id of its text alone too, as in Cassandra, where it is of no use: it cannot be prepared
/// again without.
fn rows_of(entry: &Entry) -> impl Iterator<Item = (Id, Option<&str>)> {
    let keyspaces = std::iter::once(None).chain(entry.keyspace.as_deref().map(Some));
    keyspaces.map(|keyspace| (prepared_id(keyspace, &entry.text), keyspace))
}

impl Statements {
    /// Keeps a statement that was not known. That it cannot be written makes it no less prepared.
    pub(super) async fn keep_statement(&self, entry: &Entry) {
        // no file of the node shows a password
        if matches!(entry.prepared.plan, Plan::Role(_)) {
            return;
        }
        let schema = self.shard.schema();
        let Some(table) = schema.table("system", TABLE) else { return };
        let times = Times::new(self.shard.env.unique_micros());
        for (id, keyspace) in rows_of(entry) {
            let value = |text: &str| Internal::Value(text.as_bytes().to_vec());
            let mut columns = vec![("query_string", value(&entry.text))];
            columns.extend(keyspace.map(|keyspace| ("logged_keyspace", value(keyspace))));
            let row = internal::insert(table, &[&id], &[], &columns, &times);
            let _ = internal::apply(&self.shard.engine, row).await;
        }
    }

    /// Removes the rows of statements that are no longer prepared.
    pub(super) async fn forget_statements(&self, entries: &[Rc<Entry>]) {
        for entry in entries {
            for (id, _) in rows_of(entry) {
                self.forget_row(&id).await;
            }
        }
    }

    /// A row that stays is prepared again at the next start, or found to make no sense.
    async fn forget_row(&self, id: &[u8]) {
        let id = to_hex(id);
        let text = format!("DELETE FROM system.{TABLE} WHERE prepared_id = 0x{id}");
        let _ = self.own_cql.run(&text, &[]).await;
    }

    /// Forgets the statements that a change of the schema left without a table, or with another
    /// one.
    pub(crate) async fn forget_outdated(&self, after: &Schema) {
        let outdated = self.cache.borrow_mut().take_outdated(after);
        self.forget_statements(&outdated).await;
    }

    /// Prepares what was prepared before the node ended, on all shards: how many statements that
    /// were. What can no longer be is forgotten, and what is more than shards keep is left.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn load(&self) -> Result<usize, ErrorResponse> {
        let (mut loaded, mut bytes) = (0, 0);
        let mut after = None;
        loop {
            let page = self.page_of_statements(after).await?;
            let Some((last, _)) = page.last() else { return Ok(loaded) };
            after = Some(*last);
            for (_, kept) in page {
                match kept {
                    Ok(kept) => match self.load_statement(&kept).await {
                        true => {
                            loaded += 1;
                            bytes += kept.text.len();
                        }
                        false => self.forget_row(&kept.id).await,
                    },
                    Err(id) => self.forget_row(&id).await,
                }
            }
            if self.cache.borrow().is_full_at(loaded, bytes) {
                return Ok(loaded);
            }
        }
    }

    /// The next rows in the order of the ring, each with its token; of one that is none its key.
    async fn page_of_statements(
        &self,
        after: Option<i64>,
    ) -> Result<Vec<(i64, Result<Kept, Vec<u8>>)>, ErrorResponse> {
        let begin = after.map(|token| format!("WHERE token(prepared_id) > {token} "));
        let text = format!(
            "SELECT token(prepared_id), prepared_id, logged_keyspace, query_string FROM system.{TABLE} {}LIMIT {PAGE}",
            begin.unwrap_or_default()
        );
        let rows = self.own_cql.run(&text, &[]).await?.into_iter();
        let kept = |id: &[u8], keyspace, text: Option<String>| {
            let id = id.try_into().ok()?;
            Some(Kept { id, keyspace, text: text? })
        };
        let row = |row: crate::own_cql::Row| {
            let id = row.bytes(1).unwrap_or_default().to_vec();
            let kept = kept(&id, row.text(2), row.text(3));
            (row.long(0).unwrap_or(i64::MAX), kept.ok_or(id))
        };
        Ok(rows.map(row).collect())
    }

    /// Prepares a statement on all shards, if it still makes sense here.
    async fn load_statement(&self, kept: &Kept) -> bool {
        if prepared_id(kept.keyspace.as_deref(), &kept.text) != kept.id {
            return false;
        }
        for shard in 0..self.shard.env.shards() {
            let kept = kept.clone();
            let load = async move |shard: Rc<Self>| {
                let entry = shard.prepare_here(&kept.text, kept.keyspace.as_deref(), true).await;
                shard.cache.borrow_mut().take_evicted();
                entry.is_ok()
            };
            match self.others.call_async(shard, Class::Background, load).await {
                Ok(true) => {}
                // who is stopping forgets nothing
                Ok(false) => return shard > 0,
                Err(_) => return true,
            }
        }
        true
    }
}
