//! Acceptors and rounds over several replicas, with messages that are lost, repeated and overtaken,
//! coordinators that give up half way and replicas that restart: increments of a number must never
//! be lost, as long as replicas keep what they are told to save.

use std::sync::Arc;

use env::Rng;
use internode::payload::{Commit, Promise as PromiseRsp};
use rows::{
    CellRef, ClusteringRef, ColumnLayout, Layout, PartitionUpdate, RowBuilder, UpdateBuilder,
};
use types::{CqlType, Uuid};

use super::acceptor::{Acceptor, Promise, Proposal};
use super::ballot::{Ballot, Scope};
use super::round::{Round, Step};
use super::voters::promise_of;

const REPLICAS: usize = 3;
const REQUIRED: usize = 2;
const CLIENTS: usize = 3;
const STEPS: usize = 3000;

/// What a replica loses when it restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgets {
    Nothing,
    Promises,
    Accepted,
}

fn layout() -> Arc<Layout> {
    let column = ColumnLayout { name: "n".into(), ty: CqlType::BigInt };
    Arc::new(Layout::new(Vec::new(), Vec::new(), vec![column], false))
}

/// The number `n` as an update.
fn update(n: i64, timestamp: i64) -> PartitionUpdate {
    let (layout, mut row) = (layout(), RowBuilder::new());
    row.start_row(ClusteringRef::EMPTY);
    row.cell(CellRef::live(0, None, timestamp, &n.to_be_bytes()));
    let mut update = UpdateBuilder::new([1; 16], layout.clone(), b"k");
    update.add(row.finish_row(&layout), &mut RowBuilder::new());
    update.finish(&mut RowBuilder::new())
}

fn cell(update: &PartitionUpdate) -> Option<(i64, i64)> {
    let cell = update.rows.get(0)?.cell(0)?;
    Some((cell.timestamp, i64::from_be_bytes(*cell.value.first_chunk()?)))
}

#[test]
fn an_answer_about_another_partition_is_none() {
    let commit = |micros: i64, key: &[u8]| {
        let ballot = match micros {
            0 => Ballot::none(),
            micros => Ballot::new(micros, Scope::Global, 7),
        };
        let update = UpdateBuilder::new([1; 16], layout(), key).finish(&mut RowBuilder::new());
        Commit { ballot: Uuid::from_bytes(ballot.to_bytes()), update }
    };
    let heard = |promised, in_progress, committed| {
        promise_of(PromiseRsp { promised, in_progress, committed }, &[1; 16], b"k").is_some()
    };
    for promised in [true, false] {
        assert!(heard(promised, commit(5, b"k"), commit(4, b"k")));
        assert!(heard(promised, commit(0, b""), commit(0, b"")));
        assert!(!heard(promised, commit(5, b"other"), commit(4, b"k")));
        assert!(!heard(promised, commit(5, b"k"), commit(4, b"other")));
    }
    let of_another_table =
        PromiseRsp { promised: true, in_progress: commit(5, b"k"), committed: commit(4, b"k") };
    assert!(promise_of(of_another_table, &[2; 16], b"k").is_none());
}

#[derive(Clone)]
struct Replica {
    acceptor: Acceptor,
    /// Timestamp and number.
    data: (i64, i64),
}

impl Replica {
    /// What `store::save_commit` makes of the stored state.
    fn commit(&mut self, proposal: &Proposal) {
        if let Some(cell) = cell(&proposal.update) {
            self.data = self.data.max(cell);
        }
        let acceptor = &mut self.acceptor;
        let is_later = |known: &Proposal| proposal.ballot.is_after(known.ballot);
        if acceptor.committed.as_ref().is_none_or(is_later) {
            acceptor.committed = Some(proposal.clone());
        }
        let accepted = acceptor.accepted.take();
        acceptor.accepted = accepted.filter(|accepted| accepted.ballot.is_after(proposal.ballot));
    }
}

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "there are few of them at a time")]
enum Message {
    Prepare(Ballot),
    Promised(Ballot, Box<Promise>),
    Read(Ballot),
    Found(Ballot, (i64, i64)),
    Propose(Proposal),
    Answered(Ballot, bool),
    Commit(Proposal),
    Committed(Ballot),
}

#[derive(Clone)]
struct Letter {
    client: usize,
    replica: usize,
    message: Message,
}

struct Client {
    round: Round,
    found: Vec<(i64, i64)>,
    /// Under way: the proposal, and the number if it is the client's own.
    proposal: Option<(Proposal, Option<i64>)>,
    commits: usize,
    above: Ballot,
}

struct World {
    rng: Rng,
    clock: i64,
    replicas: Vec<Replica>,
    clients: Vec<Client>,
    letters: Vec<Letter>,
    /// Numbers that increments were told to have made.
    made: Vec<i64>,
}

impl World {
    fn new(seed: u64) -> Self {
        let round = Round::new(Ballot::none(), REPLICAS, REQUIRED);
        let client = |_| Client {
            round: round.clone(),
            found: Vec::new(),
            proposal: None,
            commits: 0,
            above: Ballot::none(),
        };
        let replica = Replica { acceptor: Acceptor::new(), data: (0, 0) };
        let mut world = Self {
            rng: Rng::new(seed),
            clock: 1_700_000_000_000_000,
            replicas: vec![replica; REPLICAS],
            clients: (0..CLIENTS).map(client).collect(),
            letters: Vec::new(),
            made: Vec::new(),
        };
        (0..CLIENTS).for_each(|client| world.begin(client));
        world
    }

    fn send_all(&mut self, client: usize, message: &Message) {
        let letter = |replica| Letter { client, replica, message: message.clone() };
        self.letters.extend((0..REPLICAS).map(letter));
    }

    fn begin(&mut self, client: usize) {
        // clocks of coordinators differ by a little
        self.clock += 1;
        let micros = self.clock + self.rng.below(20) as i64;
        let above = self.clients[client].above.unix_micros() + 1;
        let ballot = Ballot::new(micros.max(above), Scope::Global, self.rng.next());
        let of = &mut self.clients[client];
        of.round = Round::new(ballot, REPLICAS, REQUIRED);
        of.found.clear();
        of.proposal = None;
        of.commits = 0;
        self.send_all(client, &Message::Prepare(ballot));
    }

    fn propose(&mut self, client: usize, proposal: Proposal, own: Option<i64>) {
        self.clients[client].proposal = Some((proposal.clone(), own));
        self.send_all(client, &Message::Propose(proposal));
    }

    fn act(&mut self, client: usize, step: Step) {
        let ballot = self.clients[client].round.ballot();
        match step {
            Step::Wait => {}
            Step::Propose => self.send_all(client, &Message::Read(ballot)),
            Step::Finish(proposal) => self.propose(client, proposal, None),
            Step::Teach(proposal, behind) => {
                for replica in behind {
                    let message = Message::Commit(proposal.clone());
                    self.letters.push(Letter { client, replica, message });
                }
                self.begin(client);
            }
            Step::Lost(later) => {
                self.clients[client].above = later;
                self.begin(client);
            }
            Step::Decided => {
                if let Some((proposal, _)) = self.clients[client].proposal.clone() {
                    self.send_all(client, &Message::Commit(proposal));
                }
            }
            Step::Unknown(_) => self.begin(client),
        }
    }

    /// A client gets an answer; one to an earlier ballot means nothing any more.
    fn hear(&mut self, Letter { client, replica, message }: Letter) {
        let of = &mut self.clients[client];
        let mine = of.round.ballot();
        match message {
            Message::Promised(ballot, promise) if ballot == mine && of.proposal.is_none() => {
                let step = of.round.promised(replica, *promise);
                self.act(client, step);
            }
            Message::Found(ballot, data) if ballot == mine && of.proposal.is_none() => {
                of.found.push(data);
                if of.found.len() == REQUIRED {
                    let (_, n) = of.found.iter().copied().max().unwrap_or_default();
                    let update = update(n + 1, mine.unix_micros());
                    self.propose(client, Proposal { ballot, update }, Some(n + 1));
                }
            }
            Message::Answered(ballot, accepted) if ballot == mine => {
                let step = of.round.answered(accepted);
                self.act(client, step);
            }
            Message::Committed(ballot) if ballot == mine => {
                of.commits += 1;
                if of.commits == REQUIRED {
                    let own = of.proposal.take().and_then(|(_, own)| own);
                    self.made.extend(own);
                    self.begin(client);
                }
            }
            _ => {}
        }
    }

    /// A replica gets a request.
    fn serve(&mut self, Letter { client, replica, message }: Letter) {
        let of = &mut self.replicas[replica];
        let answer = match message {
            Message::Prepare(ballot) => {
                Message::Promised(ballot, Box::new(of.acceptor.prepare(ballot)))
            }
            Message::Read(ballot) => Message::Found(ballot, of.data),
            Message::Propose(proposal) => {
                Message::Answered(proposal.ballot, of.acceptor.propose(&proposal))
            }
            Message::Commit(proposal) => {
                of.commit(&proposal);
                Message::Committed(proposal.ballot)
            }
            answer => return self.hear(Letter { client, replica, message: answer }),
        };
        self.letters.push(Letter { client, replica, message: answer });
    }

    fn step(&mut self, forgets: Forgets) {
        if self.rng.one_in(40) {
            let client = self.rng.below(CLIENTS as u64) as usize;
            return self.begin(client);
        }
        if self.rng.one_in(30) {
            let replica = self.rng.below(REPLICAS as u64) as usize;
            let acceptor = &mut self.replicas[replica].acceptor;
            match forgets {
                Forgets::Nothing => {}
                Forgets::Promises => acceptor.promised = Ballot::none(),
                Forgets::Accepted => acceptor.accepted = None,
            }
            return;
        }
        if self.letters.is_empty() {
            return self.begin(0);
        }
        let at = self.rng.below(self.letters.len() as u64) as usize;
        let letter = self.letters.swap_remove(at);
        match self.rng.below(20) {
            0 => {}
            _ => self.serve(letter),
        }
    }
}

/// Numbers that were made twice, over some seeds; and how many were made at all.
fn made_twice(forgets: Forgets, seeds: u64) -> (usize, usize) {
    let (mut twice, mut all) = (0, 0);
    for seed in 0..seeds {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step(forgets));
        world.made.sort_unstable();
        twice += world.made.windows(2).filter(|pair| pair[0] == pair[1]).count();
        all += world.made.len();
    }
    (twice, all)
}

#[test]
fn no_increment_is_lost() {
    let (twice, all) = made_twice(Forgets::Nothing, 60);
    assert_eq!(twice, 0);
    assert!(all > 600, "only {all} increments came about");
}

#[test]
fn replicas_that_forget_lose_increments() {
    for forgets in [Forgets::Promises, Forgets::Accepted] {
        let (twice, _) = made_twice(forgets, 200);
        assert!(twice > 0, "{forgets:?} was not noticed");
    }
}
