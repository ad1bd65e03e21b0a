//! `load ring`: readers and writers of a ring whose nodes come and go.
//!
//! Half reads, half updates (`--writes`), as YCSB's workload A, of rows of ten columns; all
//! statements idempotent, with speculative executions and the driver's own retry policy. A task
//! alone writes its rows, with a number that rises: a read that shows an older number than the last
//! one acknowledged or read is wrong, and so is one that shows a number never tried. One more task
//! adds one to a few rows by conditional statements: none may be applied twice, and none that was
//! applied be lost. Such a statement is not idempotent: whether one that failed was applied nobody
//! knows, and it is not counted as failed. In the end all rows are read at ALL through each host
//! and compared. The last line says what was found, as JSON; each second one says how it goes.

use std::cell::RefCell;
use std::io::BufRead as _;
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt as _, TryStreamExt as _};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::Row;
use tokio::sync::mpsc;

use crate::Outcome;
use crate::compare::compare;
use crate::judge::{self, Conditions, Rows};
use crate::over::Over;
use crate::pace::Pace;
use crate::reasons::Failure;
use crate::session;
use crate::timer::Timer;
use crate::usertable::{COLUMN_BYTES, COLUMNS, KEYSPACE, create, number};
use crate::wanted::Wanted;
use crate::window::Windows;

/// Inserts at a time, before the load begins.
const INSERTS: usize = 100;
/// Between two conditional statements.
const CONDITION_PAUSE: Duration = Duration::from_millis(50);
/// How often is said how it goes.
const TELL: Duration = Duration::from_secs(1);
/// The line that ends the load; all is compared once the standard input ends.
const END: &str = "end";
/// A line whole, at once: whoever started us reads it from a file or a pipe.
fn say(line: &str) {
    println!("{line}");
}

/// `ring SECONDS|- HOST... [OPTIONS]`
pub async fn run(words: &[String]) -> Outcome<bool> {
    let wanted = Wanted::parse(words)?;
    let session = session::steady(&wanted.hosts, wanted.level).await?;
    if !wanted.keeps {
        create(&session).await?;
    }
    let load = Load {
        statements: Statements::prepare(&session).await?,
        session,
        over: Over::not_yet(),
        windows: RefCell::new(Windows::new()?),
        conditions: RefCell::new(Conditions::new(&wanted.name)),
        wanted,
    };
    let Wanted { name, tasks, rows, .. } = &load.wanted;
    let mut parts: Vec<Rows> =
        (0..*tasks).map(|task| Rows::new(name, task, *tasks, *rows)).collect();
    if !load.wanted.keeps {
        load.insert(&parts).await?;
    }
    say("running");
    if load.wanted.runs {
        load.run(&mut parts).await?;
    }
    let mut windows = load.windows.into_inner();
    let conditions = load.conditions.into_inner();
    if load.wanted.compares {
        windows.wrong.extend(compare(&load.wanted, &parts, &conditions).await?);
    }
    let (applied, unknown) = conditions.counts();
    say(&windows.end_window("last"));
    say(&windows.sum(applied, unknown));
    Ok(windows.is_well())
}

struct Statements {
    insert: PreparedStatement,
    update: PreparedStatement,
    select: PreparedStatement,
    /// Of conditions.
    zero: PreparedStatement,
    look: PreparedStatement,
    add: PreparedStatement,
}

impl Statements {
    async fn prepare(session: &Session) -> Outcome<Self> {
        let table = format!("{KEYSPACE}.usertable");
        let conditions = format!("{KEYSPACE}.conditions");
        let columns: Vec<String> = (0..COLUMNS).map(|n| format!("field{n}")).collect();
        let columns = columns.join(", ");
        let marks = ["?"; COLUMNS + 1].join(", ");
        let insert = format!("INSERT INTO {table} (y_id, {columns}) VALUES ({marks})");
        let update = format!("UPDATE {table} SET field0 = ? WHERE y_id = ?");
        let select = format!("SELECT * FROM {table} WHERE y_id = ?");
        let zero = format!("INSERT INTO {conditions} (k, v) VALUES (?, 0)");
        let look = format!("SELECT v FROM {conditions} WHERE k = ?");
        let add = format!("UPDATE {conditions} SET v = ? WHERE k = ? IF v = ?");
        let mut all = Self {
            insert: session.prepare(insert).await?,
            update: session.prepare(update).await?,
            select: session.prepare(select).await?,
            zero: session.prepare(zero).await?,
            look: session.prepare(look).await?,
            add: session.prepare(add).await?,
        };
        for statement in [&mut all.insert, &mut all.update, &mut all.select] {
            statement.set_is_idempotent(true);
        }
        all.look.set_consistency(Consistency::LocalSerial);
        all.add.set_serial_consistency(Some(SerialConsistency::LocalSerial));
        Ok(all)
    }
}

struct Load {
    wanted: Wanted,
    session: Session,
    statements: Statements,
    over: Over,
    windows: RefCell<Windows>,
    conditions: RefCell<Conditions>,
}

impl Load {
    async fn insert(&self, parts: &[Rows]) -> Outcome {
        let keys = self.conditions.borrow().keys();
        for key in keys {
            self.session.execute_unpaged(&self.statements.zero, (key,)).await?;
        }
        let filler = "x".repeat(COLUMN_BYTES);
        let keys = parts.iter().flat_map(|rows| (0..rows.len()).map(|at| rows.key(at)));
        let inserts = keys.map(|key| {
            let mut values = vec![key.to_owned(), judge::shown(0)];
            values.resize(COLUMNS + 1, filler.clone());
            async move { self.session.execute_unpaged(&self.statements.insert, values).await }
        });
        let done = futures::stream::iter(inserts).buffer_unordered(INSERTS);
        done.try_for_each(|_| async { Ok(()) }).await?;
        Ok(())
    }

    /// Until it is over; where the standard input decides about that, until that ends.
    async fn run(&self, parts: &mut [Rows]) -> Outcome {
        let timers = parts.iter().map(|_| Timer::new()).collect::<Outcome<Vec<_>>>()?;
        let tasks: FuturesUnordered<_> = (parts.iter_mut().zip(0..).zip(timers))
            .map(|((rows, seed), timer)| self.task(rows, seed, timer))
            .collect();
        let load = async {
            tokio::join!(tasks.collect::<()>(), self.conditional(), self.tell());
            if self.wanted.seconds.is_none() {
                say("ended");
            }
        };
        tokio::join!(load, self.listen());
        Ok(())
    }

    /// Reads and writes rows.
    async fn task(&self, rows: &mut Rows, seed: u64, mut timer: Timer) {
        let mut rng = StdRng::seed_from_u64(seed);
        let pause = self.wanted.pause();
        let mut pace = Pace::new(Instant::now() + pause.mul_f64(rng.random()), pause);
        loop {
            timer.until(pace.due()).await;
            if self.over.is() {
                return;
            }
            let due = pace.begin(Instant::now());
            let at = rng.random_range(0..rows.len());
            let is_write = rng.random::<f64>() < self.wanted.writes;
            let outcome =
                if is_write { self.write(rows, at).await } else { self.read(rows, at).await };
            let failure = outcome.err();
            self.windows.borrow_mut().count(due.elapsed(), is_write, failure.as_ref());
        }
    }

    async fn write(&self, rows: &mut Rows, at: usize) -> Result<(), Failure> {
        let number = rows.try_next(at);
        let values = (judge::shown(number), rows.key(at));
        self.session.execute_unpaged(&self.statements.update, values).await?;
        rows.acknowledge(at, number);
        Ok(())
    }

    async fn read(&self, rows: &mut Rows, at: usize) -> Result<(), Failure> {
        let answer = self.session.execute_unpaged(&self.statements.select, (rows.key(at),)).await?;
        let answer = answer.into_rows_result().map_err(Failure::answer)?;
        let row = answer.maybe_first_row::<Row>().map_err(Failure::answer)?;
        if !self.wanted.keeps {
            let wrong = rows.read(at, row.and_then(|row| number(&row.columns)));
            self.windows.borrow_mut().wrong.extend(wrong);
        }
        Ok(())
    }

    /// Adds one to rows, if they are as they were read.
    async fn conditional(&self) {
        let mut rng = StdRng::seed_from_u64(0);
        let keys: Vec<String> = self.conditions.borrow().keys().collect();
        while !self.over.within(CONDITION_PAUSE).await {
            let Some(key) = keys.get(rng.random_range(0..keys.len())) else { continue };
            // nothing was changed by what failed to be read
            let Ok(Some(value)) = self.look(key).await else { continue };
            let values = (value + 1, key, value);
            let outcome = self.session.execute_unpaged(&self.statements.add, values).await;
            let is_applied = outcome.map_err(Failure::from).and_then(|answer| {
                let answer = answer.into_rows_result().map_err(Failure::answer)?;
                let row = answer.first_row::<Row>().map_err(Failure::answer)?;
                let applied = row.columns.first().and_then(Option::as_ref);
                applied
                    .and_then(|applied| applied.as_boolean())
                    .ok_or_else(|| Failure::answer("it is not said whether a condition held"))
            });
            let mut conditions = self.conditions.borrow_mut();
            match is_applied {
                Ok(true) => conditions.applied(key, value + 1),
                Ok(false) => {}
                Err(_) => conditions.unknown(key),
            }
        }
    }

    async fn look(&self, key: &str) -> Result<Option<i32>, Failure> {
        let answer = self.session.execute_unpaged(&self.statements.look, (key,)).await?;
        let answer = answer.into_rows_result().map_err(Failure::answer)?;
        let row = answer.maybe_first_row::<(Option<i32>,)>().map_err(Failure::answer)?;
        Ok(row.and_then(|(value,)| value))
    }

    /// Says each second how it goes, and ends the load when its time is over.
    async fn tell(&self) {
        let begun = Instant::now();
        while !self.over.within(TELL).await {
            let line = self.windows.borrow_mut().end_second();
            say(&line);
            if self.wanted.seconds.is_some_and(|seconds| begun.elapsed() >= seconds) {
                self.over.end();
            }
        }
    }

    /// Does what the lines of the standard input say, where it is that which ends the load.
    async fn listen(&self) {
        if self.wanted.seconds.is_some() {
            return;
        }
        let mut lines = lines();
        while let Some(line) = lines.recv().await {
            match line.trim() {
                END => self.over.end(),
                name => {
                    let line = self.windows.borrow_mut().end_window(name);
                    say(&line);
                }
            }
        }
        self.over.end();
    }
}

/// Of the standard input, which a thread of its own waits for.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
