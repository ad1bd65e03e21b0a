//! What a ring of several nodes holds while nodes are killed, cut off and lose messages: whatever
//! was acknowledged at QUORUM is read at QUORUM, through every node, and what was read once is not
//! lost to who reads again.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use env::sim::Fault;
use env::{Class, Rng};
use protocol::Consistency;

use crate::ring::{Members, NODES};

/// Worlds, each with its own faults.
const WORLDS: u64 = 8;
/// Worlds that are tried for each planted bug.
const WORLDS_OF_BUG: u64 = 24;
/// Things that are done in a world at once, again and again.
const ROUNDS: usize = 40;
const KEYS: usize = 4;
/// Time that a round may take: longer than any request's.
const ROUND: Duration = Duration::from_secs(8);

/// What is known of a key: each write gives it a higher number.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The last number that was tried.
    tried: i32,
    /// The highest that was acknowledged, or read.
    sure: i32,
    is_being_written: bool,
}

fn make_table(members: &Members) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    members.statement(2, format!("CREATE KEYSPACE ks WITH replication = {replication}"));
    members.statement(2, "CREATE TABLE ks.a (k int PRIMARY KEY, v int)".to_owned());
    members.until("the table is everywhere", || (1..=NODES).all(|n| members.has_table(n, "a")));
}

struct Story {
    members: Members,
    known: Rc<RefCell<[Known; KEYS]>>,
    wrong: Rc<RefCell<Vec<String>>>,
    answered: Rc<RefCell<(usize, usize)>>,
    pending: Rc<RefCell<usize>>,
    rng: Rng,
    killed: Option<u8>,
}

impl Story {
    fn new(seed: u64, bug: Option<&'static str>) -> Self {
        let members = Members::new(seed);
        make_table(&members);
        if let Some(bug) = bug {
            members.world.plant(bug);
        }
        Self {
            members,
            known: Rc::default(),
            wrong: Rc::default(),
            answered: Rc::default(),
            pending: Rc::default(),
            rng: Rng::new(seed),
            killed: None,
        }
    }

    /// Lets a node's client do something, which may never end.
    fn ask(&self, node: u8) {
        let client = self.members.nodes[usize::from(node) - 1].1.borrow().clone();
        let Some(client) = client else { return };
        let key = self.rng.below(KEYS as u64) as usize;
        let (known, wrong) = (Rc::clone(&self.known), Rc::clone(&self.wrong));
        let (answered, pending) = (Rc::clone(&self.answered), Rc::clone(&self.pending));
        *pending.borrow_mut() += 1;
        let writes = self.rng.one_in(2) && !known.borrow()[key].is_being_written;
        client.env.clone().spawn(Class::Statement, async move {
            if writes {
                let number = {
                    let of = &mut known.borrow_mut()[key];
                    of.tried += 1;
                    of.is_being_written = true;
                    of.tried
                };
                let text = format!(
                    "INSERT INTO ks.a (k, v) VALUES ({key}, {number}) USING TIMESTAMP {number}"
                );
                let done = client.try_at(Consistency::Quorum, &text).await;
                let of = &mut known.borrow_mut()[key];
                of.is_being_written = false;
                if done.is_ok() {
                    answered.borrow_mut().0 += 1;
                    of.sure = of.sure.max(number);
                }
            } else {
                let floor = known.borrow()[key].sure;
                let text = format!("SELECT v FROM ks.a WHERE k = {key}");
                if let Ok(cluster::Answer::Rows(page)) =
                    client.try_at(Consistency::Quorum, &text).await
                {
                    answered.borrow_mut().1 += 1;
                    let number = page
                        .cells
                        .get(4..8)
                        .map_or(0, |cell| i32::from_be_bytes(cell.try_into().unwrap_or_default()));
                    let of = &mut known.borrow_mut()[key];
                    if number < floor || number > of.tried {
                        let why = format!("key {key}: {number}, not {floor} to {}", of.tried);
                        wrong.borrow_mut().push(why);
                    }
                    of.sure = of.sure.max(number);
                }
            }
            *pending.borrow_mut() -= 1;
        });
    }

    fn fault(&mut self) {
        let members = &self.members;
        let node = 1 + self.rng.below(NODES.into()) as u8;
        match self.rng.below(8) {
            0 if self.killed.is_none() => {
                members.world.kill(members.id(node));
                members.nodes[usize::from(node) - 1].1.borrow_mut().take();
                self.killed = Some(node);
                // whoever waits on it waits for nothing
                *self.pending.borrow_mut() = 0;
                self.known.borrow_mut().iter_mut().for_each(|of| of.is_being_written = false);
            }
            1 | 2 => {
                if let Some(node) = self.killed.take() {
                    members.world.restart(members.id(node));
                }
            }
            3 => {
                let others = (1..=NODES).filter(|n| *n != node).map(|n| members.id(n)).collect();
                members.world.set_fault(Fault::Partition { a: vec![members.id(node)], b: others });
            }
            4 => members.world.set_fault(Fault::Heal),
            _ => {}
        }
    }

    /// What was wrong, and how many writes and reads succeeded.
    fn tell(mut self) -> (Vec<String>, (usize, usize)) {
        for _ in 0..ROUNDS {
            self.fault();
            for node in 1..=NODES {
                self.ask(node);
                self.ask(node);
            }
            let pending = Rc::clone(&self.pending);
            let _ = self.members.world.run_until(|| *pending.borrow() == 0, ROUND);
            *self.pending.borrow_mut() = 0;
        }
        let wrong = self.wrong.borrow().clone();
        let answered = *self.answered.borrow();
        (wrong, answered)
    }
}

#[test]
fn what_a_quorum_acknowledged_a_quorum_reads() {
    let mut all = (0, 0);
    for seed in 1..=WORLDS {
        let (wrong, (writes, reads)) = Story::new(seed, None).tell();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        all = (all.0 + writes, all.1 + reads);
    }
    let least = WORLDS as usize * ROUNDS;
    assert!(
        all.0 >= least / 2 && all.1 >= least / 2,
        "{all:?} succeeded, too few to tell anything"
    );
}

/// Conditional statements of several nodes at one row, each of which adds one: what each applied
/// one made of it, and what came of it in the end with how many of which nobody knows.
fn conditions(seed: u64, bug: Option<&'static str>) -> (Vec<i32>, i32, i32) {
    let story = Story::new(seed, None);
    let text = "INSERT INTO ks.a (k, v) VALUES (9, 0)";
    story.members.statement(1, text.to_owned());
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    let (applied, unknown) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(0)));
    for _ in 0..ROUNDS / 2 {
        // nobody is killed: what a killed node was told to do nobody would count
        match story.rng.below(6) {
            0 => {
                let node = 1 + story.rng.below(NODES.into()) as u8;
                let members = &story.members;
                let others = (1..=NODES).filter(|n| *n != node).map(|n| members.id(n)).collect();
                members.world.set_fault(Fault::Partition { a: vec![members.id(node)], b: others });
            }
            1 | 2 => story.members.world.set_fault(Fault::Heal),
            _ => {}
        }
        for node in 1..=NODES {
            let client = story.members.nodes[usize::from(node) - 1].1.borrow().clone().unwrap();
            let (applied, unknown) = (Rc::clone(&applied), Rc::clone(&unknown));
            let pending = Rc::clone(&story.pending);
            *pending.borrow_mut() += 1;
            client.env.clone().spawn(Class::Statement, async move {
                if let Some(value) = value_of(&client, Consistency::Serial).await {
                    let next = value + 1;
                    let text = format!("UPDATE ks.a SET v = {next} WHERE k = 9 IF v = {value}");
                    match client.try_at(Consistency::Quorum, &text).await {
                        Ok(cluster::Answer::Rows(page)) if page.cells.get(4) == Some(&1) => {
                            applied.borrow_mut().push(next);
                        }
                        Ok(_) => {}
                        Err(_) => *unknown.borrow_mut() += 1,
                    }
                }
                *pending.borrow_mut() -= 1;
            });
        }
        let pending = Rc::clone(&story.pending);
        story.members.until("all are answered", || *pending.borrow() == 0);
    }
    story.members.world.set_fault(Fault::Heal);
    story.members.all_up();
    let serving = &story.members.nodes[0].1;
    let last = crate::told(&story.members.world, serving, async |client| {
        value_of(&client, Consistency::Serial).await.unwrap()
    });
    let (applied, unknown) = (applied.borrow().clone(), *unknown.borrow());
    (applied, last, unknown)
}

async fn value_of(client: &crate::Client, level: Consistency) -> Option<i32> {
    let answer = client.try_at(level, "SELECT v FROM ks.a WHERE k = 9").await;
    let Ok(cluster::Answer::Rows(page)) = answer else { return None };
    let cell = page.cells.get(4..8)?;
    Some(i32::from_be_bytes(cell.try_into().ok()?))
}

/// What is wrong with that.
fn torn(seed: u64, bug: Option<&'static str>) -> Option<String> {
    let (mut applied, last, unknown) = conditions(seed, bug);
    let count = applied.len();
    applied.sort_unstable();
    applied.dedup();
    if applied.len() < count {
        return Some(format!("{} of {count} were applied twice", count - applied.len()));
    }
    let is_counted = last >= count as i32 && last <= count as i32 + unknown;
    (!is_counted).then(|| format!("{count} applied, {unknown} unknown, and it is {last}"))
}

#[test]
fn one_of_those_who_meet_the_same_condition_is_applied() {
    let mut all = 0;
    for seed in 1..=WORLDS {
        assert_eq!(torn(seed, None), None, "seed {seed}");
        all += conditions(seed, None).0.len();
    }
    assert!(all >= WORLDS as usize * 5, "{all} were applied");
    // what one's own replica missed, a promise mostly brings it: few worlds show the second
    for (bug, worlds) in [("ring_promise_of_one", WORLDS_OF_BUG), ("ring_cas_reads_own", 400)] {
        assert!((1..=worlds).any(|seed| torn(seed, Some(bug)).is_some()), "{bug}");
    }
}

/// Writes to a keyspace while one of its replicas is cut off: how many of them that one has in the
/// end.
fn missed(seed: u64, bug: Option<&'static str>) -> (usize, usize) {
    let story = Story::new(seed, bug);
    let members = &story.members;
    let [one, two, three] = [1, 2, 3].map(|n| members.id(n));
    members.world.set_fault(Fault::Partition { a: vec![three], b: vec![one, two] });
    for key in 0..MISSED {
        let node = 1 + (key % 2) as u8;
        let text = format!("INSERT INTO ks.a (k, v) VALUES ({key}, 7)");
        let done = crate::told(
            &members.world,
            &members.nodes[usize::from(node) - 1].1,
            async move |client| client.try_at(Consistency::Quorum, &text).await.is_ok(),
        );
        assert!(done, "seed {seed}: two of three are there");
    }
    members.world.set_fault(Fault::Heal);
    members.all_up();
    let until = std::cell::Cell::new(0);
    let has = || {
        crate::told(&members.world, &members.nodes[2].1, async |client| {
            let mut has = 0;
            for key in 0..MISSED {
                let text = format!("SELECT v FROM ks.a WHERE k = {key}");
                let answer = client.try_at(Consistency::One, &text).await;
                has += usize::from(
                    matches!(answer, Ok(cluster::Answer::Rows(page)) if page.rows == 1),
                );
            }
            has
        })
    };
    while has() < MISSED && until.get() < 60 {
        members.world.run_for(Duration::from_secs(1)).unwrap();
        until.set(until.get() + 1);
    }
    (has(), MISSED)
}

/// Writes that a node misses.
const MISSED: usize = 24;

#[test]
fn what_a_node_missed_comes_to_it() {
    for seed in 1..=WORLDS {
        let (has, all) = missed(seed, None);
        assert_eq!(has, all, "seed {seed}");
    }
    let is_found = |seed| {
        let (has, all) = missed(seed, Some("ring_drops_hint"));
        has < all
    };
    assert!((1..=WORLDS_OF_BUG).any(is_found), "ring_drops_hint");
}

/// One node alone has a write, and a read of all has shown it: what those that did not have it say
/// once it is cut off.
fn shown_once(seed: u64, bug: Option<&'static str>) -> Option<i32> {
    // what hints bring level no read has to
    let members = Members::with(seed, &["hinted_handoff_enabled=false"]);
    make_table(&members);
    let [one, two, three] = [1, 2, 3].map(|n| members.id(n));
    let cut_off = || Fault::Partition { a: vec![three], b: vec![one, two] };
    members.world.set_fault(cut_off());
    let serving = |n: u8| &members.nodes[usize::from(n) - 1].1;
    crate::told(&members.world, serving(3), async |client| {
        let text = "INSERT INTO ks.a (k, v) VALUES (9, 7)";
        client.try_at(Consistency::One, text).await.map(drop).map_err(|error| error.message)
    })
    .unwrap();
    members.world.run_for(Duration::from_secs(20)).unwrap();
    members.world.set_fault(Fault::Heal);
    members.all_up();
    if let Some(bug) = bug {
        members.world.plant(bug);
    }
    let read = |level| {
        let read = async move |client: crate::Client| value_of(&client, level).await;
        crate::told(&members.world, serving(1), read)
    };
    let shown = read(Consistency::All);
    assert_eq!(shown, Some(7), "seed {seed}");
    members.world.set_fault(cut_off());
    members.until("it is down", || members.seen(1) == (3, 2));
    read(Consistency::Quorum)
}

#[test]
fn what_a_read_has_shown_is_not_lost() {
    for seed in 1..=WORLDS / 2 {
        assert_eq!(shown_once(seed, None), Some(7), "seed {seed}");
    }
    assert_eq!(shown_once(1, Some("ring_skips_read_repair")), None);
}

#[test]
fn a_ring_that_is_wrong_shows() {
    for bug in ["ring_acks_early", "ring_reads_own_only"] {
        let is_wrong = |seed| !Story::new(seed, Some(bug)).tell().0.is_empty();
        assert!((1..=WORLDS_OF_BUG).any(is_wrong), "{bug}");
    }
}
