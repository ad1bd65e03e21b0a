//! The whole node as worlds handle it: changes and reads as statements over its connections.

use std::net::IpAddr;
use std::rc::Rc;

use env::Env;
use env::sim::{NodeId, World};
use protocol::BatchKind;
use protocol::client::{Answer as Result_, BatchItem, BatchRequest, Parameters};

use crate::connection::Connection;
use crate::cql_node::CqlNode;
use crate::failed::Failed;
use crate::operation::{Answer, Query, Range, Row, Value, Write};
use crate::plan::Plan;
use crate::site::Site;
use crate::statement::{definitions, of_change, of_query};
use crate::tables;
use crate::target::Target;

async fn read_pages(
    connection: &mut Connection,
    query: &Query,
    now: i64,
    prepared: bool,
) -> Result<Answer, Failed> {
    let statement = of_query(query);
    let mut parameters = Parameters {
        values: statement.values,
        page_size: query.page.map(|page| page as i32),
        now_in_seconds: u32::try_from(now).ok(),
        ..Parameters::default()
    };
    let mut answer = Answer { statics: None, rows: Vec::new(), now };
    let mut pages = 0;
    loop {
        let page = connection.run(&statement.text, &parameters, prepared).await?;
        let Result_::Rows(page) = page else {
            return Err(Failed::Wrong(format!("SELECT gave {page:?}")));
        };
        let mut statics = None;
        for cells in &page.rows {
            take_row(cells, &mut answer.rows, &mut statics)
                .ok_or_else(|| Failed::Wrong(format!("a row with cells {cells:?}")))?;
        }
        statics_of_page(&mut answer, statics, pages);
        pages += 1;
        match page.metadata.paging_state {
            Some(state) => parameters.paging_state = Some(state),
            None => break,
        }
    }
    if pages == 1 && answer.statics.is_none() && query.range == Range::ALL {
        answer.statics = Some(None);
    }
    Ok(answer)
}

/// Each page reads the static column anew: what they disagree about, the answer does not tell.
fn statics_of_page(answer: &mut Answer, statics: Option<Option<Value>>, pages_before: u32) {
    match statics {
        Some(_) if pages_before == 0 => answer.statics = statics,
        Some(_) if answer.statics != statics => answer.statics = None,
        _ => {}
    }
}

/// Adds a row of `c`, `s`, `a`, `b`; `None` if it is not one, or not of the page whose rows have
/// these statics.
fn take_row(
    cells: &[Option<Vec<u8>>],
    rows: &mut Vec<Row>,
    page_statics: &mut Option<Option<Value>>,
) -> Option<()> {
    let [c, s, a, b] = cells else { return None };
    let blob = |cell: &Option<Vec<u8>>| match cell {
        Some(bytes) => Value::from_blob(bytes).map(Some),
        None => Some(None),
    };
    let statics = blob(s)?;
    if page_statics.replace(statics).is_some_and(|before| before != statics) {
        return None;
    }
    let b = match b {
        Some(bytes) => Some(Value(u64::from_be_bytes(bytes.as_slice().try_into().ok()?))),
        None => None,
    };
    if let Some(c) = c {
        let row = i32::from_be_bytes(c.as_slice().try_into().ok()?);
        rows.push(Row { row, a: blob(a)?, b });
    }
    Some(())
}

impl Target for CqlNode {
    async fn write(
        &self,
        connection: u64,
        write: &Write,
        now: i64,
        _: Box<dyn FnOnce(i64)>,
    ) -> Result<(), Failed> {
        let parameters =
            Parameters { now_in_seconds: u32::try_from(now).ok(), ..Parameters::default() };
        let statements: Vec<_> =
            write.changes.iter().map(|(partition, change)| of_change(*partition, change)).collect();
        let prepared = connection & (1 << 40) != 0;
        let run = async |open: &mut Connection| {
            if let [statement] = &statements[..] {
                let values = statement.values.clone();
                let parameters = Parameters { values, ..parameters };
                return open.run(&statement.text, &parameters, prepared).await;
            }
            let kind = if write.is_atomic() { BatchKind::Logged } else { BatchKind::Unlogged };
            let items = statements.into_iter().map(|s| (BatchItem::Text(s.text), s.values));
            open.batch(&BatchRequest { kind, items: items.collect(), parameters }).await
        };
        match self.on(connection, run).await? {
            Result_::Void => Ok(()),
            other => Err(Failed::Wrong(format!("{write:?} gave {other:?}"))),
        }
    }

    async fn read(&self, connection: u64, query: &Query, now: i64) -> Result<Answer, Failed> {
        let prepared = connection & (1 << 40) != 0;
        let run = async |open: &mut Connection| read_pages(open, query, now, prepared).await;
        self.on(connection, run).await
    }

    async fn truncate(&self, connection: u64, table: u8) -> Result<(), Failed> {
        let text = format!("TRUNCATE {}.t{table}", tables::KEYSPACE);
        let run =
            async |open: &mut Connection| open.run(&text, &Parameters::default(), false).await;
        match self.on(connection, run).await? {
            Result_::Void => Ok(()),
            other => Err(Failed::Wrong(format!("{text} gave {other:?}"))),
        }
    }

    async fn shard_of(&self, connection: u64) -> Option<usize> {
        let shard = async |open: &mut Connection| Ok(open.shard);
        self.on(connection, shard).await.ok().flatten()
    }

    async fn maintain(&self, what: u64) -> Result<(), Failed> {
        let table = format!("t{}", what % 2);
        self.maintain_table(tables::KEYSPACE, &table, (what >> 8).is_multiple_of(3)).await
    }

    fn takes_batches(&self) -> bool {
        true
    }

    fn counters(self: Rc<Self>) -> Option<Rc<CqlNode>> {
        Some(self)
    }
}

impl Site for CqlNode {
    fn new(plan: &Plan, clients: &Env, address: IpAddr) -> Rc<Self> {
        Self::new(plan, clients, address)
    }

    fn start(self: &Rc<Self>, world: &World, node: NodeId, shards: usize) {
        Self::start(self, world, node, shards);
    }

    fn is_serving(&self) -> bool {
        Self::is_serving(self)
    }

    async fn prepare(&self) -> Result<(), Failed> {
        for text in definitions() {
            let run =
                async |open: &mut Connection| open.run(&text, &Parameters::default(), false).await;
            self.on(0, run).await.map_err(|error| Failed::Wrong(format!("{text}: {error}")))?;
        }
        Ok(())
    }

    fn closed(&self) {
        Self::closed(self);
    }

    fn failure(&self) -> Option<String> {
        Self::failure(self)
    }
}
