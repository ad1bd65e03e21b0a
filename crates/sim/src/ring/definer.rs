//! Who changes the schema while all goes on.

use std::rc::Rc;
use std::time::Duration;

use env::{Env, Rng};
use protocol::Consistency;

use super::ask::{Failed, Statement, ask};
use super::definitions::Defined;
use super::member::Members;
use super::model::Model;

/// Between two changes of a client, in milliseconds.
const THINK_MILLIS: (u64, u64) = (2_000, 12_000);

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
        let own = definitions.there(&format!("t{}_", self.number));
        own.get(self.rng.below(own.len().max(1) as u64) as usize).map(|name| (*name).to_owned())
    }

    async fn change(&self, text: String) -> Result<(), Failed> {
        let there: Vec<_> = self.members.iter().filter_map(|member| member.door()).collect();
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
        self.model.definitions.borrow_mut().note(table, change);
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
