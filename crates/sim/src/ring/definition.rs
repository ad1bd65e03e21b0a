//! Changes of the schema under way, and what of them must be there in the end.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use env::{Env, Rng};
use protocol::Consistency;
use schema::Schema;

use super::ask::{Failed, Statement, ask};
use super::member::Members;
use super::model::Model;

/// Between two changes of a client, in milliseconds.
const THINK_MILLIS: (u64, u64) = (2_000, 12_000);

/// What is known of a table.
#[derive(Clone, Debug)]
struct Defined {
    /// Columns that it must have.
    columns: Vec<String>,
    /// Is it dropped for sure?
    is_dropped: bool,
    /// It may be dropped, or not be what it was meant to be: nothing is asked of it any more.
    is_unsure: bool,
}

/// What became of the schema, by table.
#[derive(Clone, Debug, Default)]
pub struct Definitions(BTreeMap<String, Defined>);

impl Definitions {
    /// What of it is not so in a schema.
    pub fn missing(&self, schema: &Schema) -> Option<String> {
        self.0.iter().find_map(|(name, defined)| {
            let table = schema.table("ring", name);
            match table {
                _ if defined.is_unsure => None,
                Some(_) if defined.is_dropped => Some(format!("{name} is still there")),
                None if !defined.is_dropped => Some(format!("{name} is not there")),
                Some(table) => {
                    let lacks = |column: &&String| table.column(column).is_none();
                    let column = defined.columns.iter().find(lacks);
                    column.map(|column| format!("{name} has no {column}"))
                }
                None => None,
            }
        })
    }
}

/// Who changes the schema: tables of its own, and columns of one of all.
pub struct Definer {
    /// Where it is.
    pub env: Env,
    /// Whom it asks.
    pub members: Members,
    /// What it knows.
    pub model: Rc<Model>,
    /// Its dice.
    pub rng: Rng,
    /// Which of several.
    pub number: usize,
    /// Are tables dropped? Not where clocks jump: what is dropped by a clock that stands behind is
    /// there still.
    pub drops: bool,
}

impl Definer {
    /// Works until nothing goes wrong any more.
    pub async fn run(self) {
        let mut made = 0;
        loop {
            let think = self.rng.between(THINK_MILLIS.0, THINK_MILLIS.1);
            self.env.sleep(Duration::from_millis(think)).await;
            if self.model.is_quiet.get() {
                return;
            }
            made += 1;
            let number = self.number;
            let own = self.own();
            match (self.rng.below(4), own) {
                (0, _) => {
                    let column = format!("x{number}_{made}");
                    self.add_column("r", column).await;
                }
                (1, Some(table)) if self.drops => self.drop_table(&table).await,
                (1 | 2, Some(table)) => self.add_column(&table, format!("y{made}")).await,
                _ => self.create(format!("t{number}_{made}")).await,
            }
        }
    }

    /// A table of this client's that is there for sure.
    fn own(&self) -> Option<String> {
        let definitions = self.model.definitions.borrow();
        let prefix = format!("t{}_", self.number);
        let is_own = |(name, defined): &(&String, &Defined)| {
            name.starts_with(&prefix) && !defined.is_dropped && !defined.is_unsure
        };
        let own: Vec<_> = definitions.0.iter().filter(is_own).collect();
        own.get(self.rng.below(own.len().max(1) as u64) as usize).map(|(name, _)| (*name).clone())
    }

    async fn change(&self, text: String) -> Result<(), Failed> {
        let there: Vec<_> = self.members.iter().filter_map(|member| member.way()).collect();
        let way = there.get(self.rng.below(there.len().max(1) as u64) as usize);
        let way = way.ok_or(Failed::Gone)?;
        let statement = Statement::new(Consistency::One, text.clone());
        let answer = ask(&self.env, way, statement).await;
        self.model.tell(self.env.now(), || format!("{text}: {:?}", answer.as_ref().err()));
        match &answer {
            Ok(_) => self.model.count("ring.defined"),
            Err(Failed::Stuck) => self.model.fail(format!("a node never ends {text}")),
            Err(_) => self.model.count("ring.not_defined"),
        }
        answer.map(drop)
    }

    fn note(&self, table: &str, change: impl FnOnce(&mut Defined)) {
        let nothing = || Defined { columns: Vec::new(), is_dropped: false, is_unsure: false };
        let mut definitions = self.model.definitions.borrow_mut();
        change(definitions.0.entry(table.to_owned()).or_insert_with(nothing));
    }

    async fn create(&self, name: String) {
        self.note(&name, |defined| defined.is_unsure = true);
        let text = format!("CREATE TABLE ring.{name} (k int PRIMARY KEY, v text)");
        if self.change(text).await.is_ok() {
            self.note(&name, |defined| defined.is_unsure = false);
        }
    }

    async fn add_column(&self, table: &str, column: String) {
        let done = self.change(format!("ALTER TABLE ring.{table} ADD {column} int")).await;
        match done {
            Ok(()) => self.note(table, |defined| defined.columns.push(column)),
            // it may still be altered after all that comes now
            Err(_) if table != "r" => self.note(table, |defined| defined.is_unsure = true),
            Err(_) => {}
        }
    }

    async fn drop_table(&self, table: &str) {
        self.note(table, |defined| defined.is_unsure = true);
        if self.change(format!("DROP TABLE ring.{table}")).await.is_ok() {
            self.note(table, |defined| (defined.is_dropped, defined.is_unsure) = (true, false));
        }
    }
}
