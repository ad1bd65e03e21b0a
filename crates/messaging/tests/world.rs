//! Nodes of a simulated world that ask each other, over a network that loses, breaks and parts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use env::sim::{Fault, World, WorldOptions};
use env::{Class, Env, Mesh, TcpStream};
use internode::handshake::ACCEPT_LENGTH;
use internode::{
    Connection, FailureReason, Flags, Framing, Header, Initiate, Outgoing, Param, Params, Queued,
    Quota, Verb, Versions,
};
use messaging::{Answer, Came, Capacity, Failed, Job, Messenger, Serve, Served, Settings};
use metrics::{Level, Registry};
use types::Address;

const PORT: u16 = 7000;
const PATIENCE: Duration = Duration::from_secs(120);

fn node(n: u8) -> Address {
    Address::new([10, 0, 0, n], PORT)
}

/// What all nodes of a world did.
#[derive(Default)]
struct Seen {
    /// Payloads of requests that were served.
    served: RefCell<Vec<Vec<u8>>>,
    messengers: RefCell<Vec<((u8, usize), Rc<Messenger>)>>,
    notes: RefCell<Vec<String>>,
}

impl Seen {
    fn messenger(&self, n: u8, shard: usize) -> Option<Rc<Messenger>> {
        let all = self.messengers.borrow();
        all.iter().rev().find(|(place, _)| *place == (n, shard)).map(|(_, m)| Rc::clone(m))
    }
}

/// Echoes READ, fails RANGE, and never answers COUNTER_MUTATION.
struct Echo {
    seen: Rc<Seen>,
    compresses: bool,
}

impl Serve for Echo {
    fn serve(&self, messenger: &Rc<Messenger>, request: Served) {
        self.seen.served.borrow_mut().push(request.payload.clone());
        match request.header.verb {
            Verb::ReadReq => {
                let payload = request.payload.clone();
                messenger.answer(&request, Params::NONE, payload);
            }
            Verb::RangeReq => messenger.fail(&request, FailureReason::TooManyTombstones),
            Verb::MutationReq => {
                // a Cassandra passes it on to one other node under the id that it has itself,
                // whatever is said of that
                if let [(_, id)] = request.header.params.forward_to() {
                    assert_eq!(*id, request.header.id);
                }
                messenger.forward(&request);
                messenger.answer(&request, Params::NONE, Vec::new());
            }
            _ => {}
        }
    }

    fn knows(&self, node: Address) -> bool {
        [2, 3].map(self::node).contains(&node)
    }

    fn compresses(&self, _: Address) -> bool {
        self.compresses
    }

    fn encrypts(&self, _: Address) -> bool {
        false
    }

    fn stream(&self, _: messaging::StreamSocket) {}

    fn note_at(&self, _: &'static std::panic::Location<'static>, _: Level, message: String) {
        self.seen.notes.borrow_mut().push(message);
    }
}

async fn run(
    n: u8,
    seen: Rc<Seen>,
    capacity: Option<Capacity>,
    env: Env,
    mesh: Mesh<Job>,
) -> std::io::Result<()> {
    let mut settings = Settings::new(node(n), ([0, 0, 0, 0], PORT).into());
    if let Some(capacity) = capacity {
        (settings.send, settings.receive) = (capacity, capacity);
        settings.max_message = capacity.endpoint;
    }
    let (registry, others) = (Registry::new(env.shard() as u32), mesh.clone());
    let messenger =
        Messenger::new(&env, settings, &registry, move |shard, job| others.send(shard, job));
    seen.messengers.borrow_mut().push(((n, env.shard()), Rc::clone(&messenger)));
    let server: Rc<dyn Serve> = Rc::new(Echo { seen, compresses: n.is_multiple_of(2) });
    let _listening = messenger.listen(Rc::downgrade(&server))?;
    let ended = Rc::new(Cell::new(false));
    let jobs = Rc::clone(&messenger);
    env.spawn(Class::Statement, async move {
        while !ended.get() {
            let (_, job) = mesh.recv().await;
            job(&jobs);
        }
    });
    env.terminated().await;
    Ok(())
}

fn world(seed: u64, nodes: u8, shards: usize) -> (World, Rc<Seen>) {
    world_with(seed, nodes, shards, None)
}

fn world_with(
    seed: u64,
    nodes: u8,
    shards: usize,
    capacity: Option<Capacity>,
) -> (World, Rc<Seen>) {
    let (world, seen) = (World::new(seed, WorldOptions::default()), Rc::new(Seen::default()));
    for n in 1..=nodes {
        let id = world.node(std::net::Ipv4Addr::new(10, 0, 0, n).into());
        let seen = Rc::downgrade(&seen);
        world.start(id, shards, move |env, mesh| {
            let seen = Weak::upgrade(&seen).expect("the test holds it");
            run(n, seen, capacity, env, mesh)
        });
    }
    let up = || seen.messengers.borrow().len() == usize::from(nodes) * shards;
    world.run_until(up, PATIENCE).expect("started");
    (world, seen)
}

type Outcomes = Rc<RefCell<Vec<Result<Vec<u8>, Failed>>>>;

fn ask(from: &Rc<Messenger>, to: u8, verb: Verb, payload: &[u8]) -> Outcomes {
    let outcomes = Outcomes::default();
    let kept = Rc::clone(&outcomes);
    from.ask(node(to), verb, Flags::NONE, Params::NONE, &Arc::from(payload), move |answer| {
        kept.borrow_mut().push(answer.map(|answer| answer.payload));
    });
    outcomes
}

fn wait(world: &World, outcomes: &Outcomes) -> Result<Vec<u8>, Failed> {
    world.run_until(|| !outcomes.borrow().is_empty(), PATIENCE).expect("it ends");
    outcomes.borrow_mut().remove(0)
}

#[test]
fn requests_of_all_sizes_are_answered_whichever_shard_asks() {
    let (world, seen) = world(1, 2, 3);
    for shard in 0..3 {
        for (from, to) in [(1, 2), (2, 1)] {
            let messenger = seen.messenger(from, shard).expect("runs");
            for size in [0, 10, 70_000, 3_000_000] {
                let payload: Vec<u8> = (0..size).map(|n: usize| (n * 31 + size) as u8).collect();
                let outcome = ask(&messenger, to, Verb::ReadReq, &payload);
                assert!(wait(&world, &outcome) == Ok(payload), "{size}");
            }
        }
    }
}

#[test]
fn failures_say_why_and_silence_ends_in_time() {
    let (world, seen) = world(2, 2, 1);
    let messenger = seen.messenger(1, 0).expect("runs");
    let outcome = ask(&messenger, 2, Verb::RangeReq, b"x");
    let failure = Failed::Replica(FailureReason::TooManyTombstones);
    assert_eq!(wait(&world, &outcome), Err(failure));
    let before = world.now();
    let silent = ask(&messenger, 2, Verb::CounterMutationReq, b"x");
    let sooner = ask(&messenger, 2, Verb::PaxosPrepareReq, b"x");
    assert_eq!(wait(&world, &sooner), Err(Failed::Timeout));
    let took = world.now().since(before);
    assert!((1_990..2_100).contains(&took.as_millis()), "{took:?}");
    assert_eq!(wait(&world, &silent), Err(Failed::Timeout));
    let took = world.now().since(before);
    assert!((4_990..5_100).contains(&took.as_millis()), "{took:?}");
    // a node that is not there
    let nowhere = ask(&messenger, 9, Verb::ReadReq, b"x");
    assert_eq!(wait(&world, &nowhere), Err(Failed::Timeout));
}

/// The next message goes by what the operator set last, on a connection that is open too.
#[test]
fn patience_is_what_was_set_last() {
    let (world, seen) = world(6, 2, 1);
    let messenger = seen.messenger(1, 0).expect("runs");
    assert_eq!(wait(&world, &ask(&messenger, 2, Verb::ReadReq, b"x")), Ok(b"x".to_vec()));
    for millis in [700, 3_000] {
        let mut patience = messenger.patience();
        patience.timeouts.counter = millis;
        messenger.set_patience(patience);
        let before = world.now();
        let silent = ask(&messenger, 2, Verb::CounterMutationReq, b"x");
        assert_eq!(wait(&world, &silent), Err(Failed::Timeout));
        let took = world.now().since(before).as_millis();
        assert!((u128::from(millis) - 10..u128::from(millis) + 100).contains(&took), "{took}");
    }
}

/// What is sent, and what comes in too late, is counted where it happens.
#[test]
fn messages_are_counted_by_connection_and_by_verb() {
    let (world, seen) = world(7, 2, 1);
    let (one, two) = (seen.messenger(1, 0).expect("runs"), seen.messenger(2, 0).expect("runs"));
    assert!(wait(&world, &ask(&one, 2, Verb::ReadReq, b"x")).is_ok());
    assert!(wait(&world, &ask(&one, 2, Verb::ReadReq, &[0; 100_000])).is_ok());
    assert!(wait(&world, &ask(&one, 2, Verb::RangeReq, b"x")).is_err());
    let sent = |messenger: &Rc<Messenger>| {
        [Connection::Urgent, Connection::Small, Connection::Large].map(|kind| {
            let sent = messenger.sent(kind);
            (sent.pending, sent.completed, sent.dropped)
        })
    };
    assert_eq!(sent(&one), [(0, 0, 0), (0, 2, 0), (0, 1, 0)]);
    assert_eq!(sent(&two), [(0, 1, 0), (0, 1, 0), (0, 1, 0)]);
    assert_eq!(two.came(Verb::ReadReq), Came { received: 2, dropped: 0 });
    assert_eq!(one.came(Verb::FailureRsp), Came { received: 1, dropped: 0 });
    // a node that is not there takes nothing
    assert_eq!(wait(&world, &ask(&one, 9, Verb::ReadReq, b"x")), Err(Failed::Timeout));
    world.run_for(Duration::from_secs(5)).expect("runs");
    assert_eq!(sent(&one)[1], (0, 2, 1));
    // one that is worth nothing when it comes, on a network that takes longer
    let mut patience = one.patience();
    patience.timeouts.write = 0;
    one.set_patience(patience);
    assert_eq!(wait(&world, &ask(&one, 2, Verb::MutationReq, b"x")), Err(Failed::Timeout));
    world.run_for(Duration::from_secs(1)).expect("runs");
    assert_eq!(sent(&one)[1].2 + two.came(Verb::MutationReq).dropped, 2);
}

#[test]
fn what_is_forwarded_is_answered_to_its_sender() {
    let (world, seen) = world(3, 3, 2);
    let messenger = seen.messenger(1, 1).expect("runs");
    let (first, second) = (Outcomes::default(), Outcomes::default());
    let kept = Rc::clone(&second);
    let told = Rc::clone(&first);
    let on_answer: Rc<dyn Fn(Address, _)> = Rc::new(move |from, answer: Result<Answer, Failed>| {
        let place = if from == node(2) { &told } else { &kept };
        place.borrow_mut().push(answer.map(|answer| answer.payload));
    });
    let payload = Arc::from(&b"row"[..]);
    messenger.ask_through(
        node(2),
        &[node(3)],
        Verb::MutationReq,
        Params::NONE,
        &payload,
        &on_answer,
    );
    assert_eq!(wait(&world, &first), Ok(Vec::new()));
    assert_eq!(wait(&world, &second), Ok(Vec::new()));
    assert_eq!(*seen.served.borrow(), [b"row", b"row"]);
}

/// A message that names a node twice is no way to have it sent twice.
#[test]
fn what_is_forwarded_goes_to_each_once() {
    let (world, seen) = world(4, 3, 1);
    let messenger = seen.messenger(1, 0).expect("runs");
    let params = Params::NONE.with(Param::ForwardTo((0..1000).map(|id| (node(3), id)).collect()));
    messenger.ask(node(2), Verb::MutationReq, Flags::NONE, params, &Arc::from(&b"row"[..]), |_| {});
    world.run_for(Duration::from_secs(5)).expect("runs");
    assert_eq!(*seen.served.borrow(), [b"row", b"row"]);
}

/// A shard has a part of the memory for messages; a message for which there is memory is not larger
/// than that.
#[test]
fn a_message_as_large_as_allowed_finds_room_at_any_shard() {
    let capacity = Capacity { connection: 64 << 10, endpoint: 2 << 20, global: 2 << 20 };
    let (world, seen) = world_with(5, 2, 4, Some(capacity));
    let messenger = seen.messenger(1, 3).expect("runs");
    let payload = vec![7; 1_900_000];
    let outcome = ask(&messenger, 2, Verb::ReadReq, &payload);
    assert!(wait(&world, &outcome) == Ok(payload));
}

/// Begins a large message in the name of a node, which is worth something for so many milliseconds,
/// and never ends it.
async fn begin_large(env: Env, name: Address, expires_in: u64) -> std::io::Result<()> {
    let stream = TcpStream::connect(&env, (node(1).ip, PORT).into()).await?;
    let (versions, connection) = (Versions::OURS, Connection::Large);
    let initiate = Initiate { versions, connection, framing: Framing::Crc, from: name };
    let mut outgoing = Outgoing::new(initiate, 2 << 20, 2 << 20);
    let mut out = Vec::new();
    outgoing.connected(&mut out);
    stream.write_all(&out).await?;
    let mut answer = Vec::new();
    while answer.len() < ACCEPT_LENGTH {
        let mut bytes = [0; ACCEPT_LENGTH];
        let read = stream.read(&mut bytes).await?;
        answer.extend_from_slice(&bytes[..read]);
    }
    outgoing.received(&answer).expect("accepted");
    let now = env.unix_micros() / 1000;
    let header = Header::new(1, Verb::ReadReq, now, expires_in);
    let expires_at = now + expires_in as i64;
    let [mut endpoint, mut global] = [Quota::new(2 << 20), Quota::new(2 << 20)];
    let queued = Queued { header, payload: vec![0; 1_900_000].into(), expires_at };
    outgoing.push(queued, now, [&mut endpoint, &mut global], &mut drop).expect("room");
    out.clear();
    outgoing.flush(now, [&mut endpoint, &mut global], usize::MAX, &mut out, &mut drop);
    stream.write_all(&out[..200_000]).await?;
    env.terminated().await;
    Ok(())
}

/// The room that is kept for a large message of which no more comes is another's as soon as the
/// message would be worth nothing, or in five minutes.
#[test]
fn a_large_message_that_never_ends_keeps_nobody_out() {
    let capacity = Capacity { connection: 64 << 10, endpoint: 2 << 20, global: 2 << 20 };
    for (expires_in, asked_after) in [(2_000, 1), (u64::MAX / 4, 298)] {
        let (world, seen) = world_with(6, 2, 1, Some(capacity));
        let stranger = world.node(std::net::Ipv4Addr::new(10, 0, 0, 9).into());
        world.start(stranger, 1, move |env, _: Mesh<Job>| begin_large(env, node(2), expires_in));
        world.run_for(Duration::from_secs(asked_after)).expect("runs");
        let messenger = seen.messenger(2, 0).expect("runs");
        let payload = vec![7; 1_900_000];
        let outcome = ask(&messenger, 1, Verb::ReadReq, &payload);
        assert!(wait(&world, &outcome) == Ok(payload), "{expires_in}");
    }
}

/// Who waits for a node behind another waits no longer than for any, though nothing else is waited
/// for, and the clock is set.
#[test]
fn silence_behind_another_ends_in_time() {
    let (world, seen) = world(8, 2, 1);
    let messenger = seen.messenger(1, 0).expect("runs");
    let silent = Outcomes::default();
    let kept = Rc::clone(&silent);
    let on_answer: Rc<dyn Fn(Address, _)> = Rc::new(move |from, answer: Result<Answer, Failed>| {
        if from == node(9) {
            kept.borrow_mut().push(answer.map(|answer| answer.payload));
        }
    });
    let before = world.now();
    let payload = Arc::from(&b"row"[..]);
    messenger.ask_through(
        node(2),
        &[node(9)],
        Verb::MutationReq,
        Params::NONE,
        &payload,
        &on_answer,
    );
    let one = world.node(std::net::Ipv4Addr::new(10, 0, 0, 1).into());
    world.set_fault(Fault::ClockJump { node: one, micros: -60_000_000 });
    assert_eq!(wait(&world, &silent), Err(Failed::Timeout));
    let took = world.now().since(before);
    assert!((1_990..2_100).contains(&took.as_millis()), "{took:?}");
}

/// Whatever the network does, each request ends once, none is served twice, and none gets another's
/// answer.
#[test]
fn requests_end_once_whatever_the_network_does() {
    let (mut answered, mut timed_out) = (0, 0);
    for seed in 0..40 {
        let (world, seen) = world(seed, 3, 2);
        let rng = env::Rng::new(seed);
        let ids: Vec<_> =
            (1..=3).map(|n| world.node(std::net::Ipv4Addr::new(10, 0, 0, n).into())).collect();
        world.set_fault(Fault::Loss { one_in: 20 });
        world.set_fault(Fault::Reset { one_in: 200 });
        let mut asked = Vec::new();
        for number in 0..150u32 {
            let place = |n: u64| (n % 3) as u8 + 1;
            let from = place(rng.next());
            let to = place(u64::from(from) + rng.next() % 2);
            let shard = (rng.next() % 2) as usize;
            let messenger = seen.messenger(from, shard).expect("runs");
            let size = if rng.one_in(10) { 200_000 } else { 20 };
            let mut payload = number.to_be_bytes().to_vec();
            payload.resize(size, number as u8);
            asked.push((payload.clone(), ask(&messenger, to, Verb::ReadReq, &payload)));
            match rng.next() % 40 {
                0 => world.set_fault(Fault::Partition { a: vec![ids[0]], b: vec![ids[1]] }),
                1 | 2 => world.set_fault(Fault::Heal),
                _ => {}
            }
            world.run_for(Duration::from_millis(rng.next() % 30)).expect("runs");
        }
        world.set_fault(Fault::Heal);
        world.run_for(Duration::from_secs(12)).expect("runs");
        for (payload, outcomes) in &asked {
            let outcomes = outcomes.borrow();
            assert_eq!(outcomes.len(), 1, "seed {seed}: {} bytes", payload.len());
            match &outcomes[0] {
                Ok(answer) => {
                    assert!(answer == payload, "seed {seed}: another's answer");
                    answered += 1;
                }
                Err(Failed::Timeout) => timed_out += 1,
                Err(other) => panic!("seed {seed}: {other:?}"),
            }
        }
        let served = seen.served.take();
        let once: BTreeSet<_> = served.iter().collect();
        assert_eq!(once.len(), served.len(), "seed {seed}: served twice");
        // and it goes on
        world.set_fault(Fault::Loss { one_in: 0 });
        world.set_fault(Fault::Reset { one_in: 0 });
        let messenger = seen.messenger(1, 0).expect("runs");
        assert_eq!(wait(&world, &ask(&messenger, 2, Verb::ReadReq, b"end")), Ok(b"end".to_vec()));
    }
    assert!(answered > 4_000 && timed_out > 50, "{answered} answered, {timed_out} not");
}

/// Who claims to be many costs no more than a few, and keeps nobody out for longer than it takes to
/// find that it is not there.
#[test]
fn strangers_are_few() {
    let (world, seen) = world(4, 4, 1);
    let messenger = seen.messenger(1, 0).expect("runs");
    let nobody: Arc<[u8]> = Arc::from(&b"x"[..]);
    for host in 0..200 {
        let to = Address::new([10, 9, 0, host], PORT);
        messenger.send(to, Verb::GossipDigestAck2, &nobody);
        messenger.ask(to, Verb::ReadReq, Flags::NONE, Params::NONE, &nobody, |_| {});
    }
    assert_eq!(messenger.waiting().len(), 2 * 64, "two connections each");
    assert_eq!(wait(&world, &ask(&messenger, 4, Verb::ReadReq, b"x")), Err(Failed::NotSent));
    assert_eq!(wait(&world, &ask(&messenger, 2, Verb::ReadReq, b"x")), Ok(b"x".to_vec()));
    world.run_for(Duration::from_secs(3)).expect("runs");
    assert_eq!(wait(&world, &ask(&messenger, 4, Verb::ReadReq, b"y")), Ok(b"y".to_vec()));
    assert!(messenger.waiting().len() <= 6, "{}", messenger.waiting().len());
}

#[test]
fn a_connection_to_a_node_that_is_down_is_given_up() {
    let (world, seen) = world(5, 2, 1);
    let messenger = seen.messenger(1, 0).expect("runs");
    assert!(wait(&world, &ask(&messenger, 2, Verb::ReadReq, b"x")).is_ok());
    let is_open = || messenger.waiting().iter().any(|(.., is_open)| *is_open);
    assert!(is_open());
    messenger.interrupt(node(2));
    world.run_until(|| !is_open(), Duration::from_secs(1)).expect("it is closed");
    assert!(wait(&world, &ask(&messenger, 2, Verb::ReadReq, b"y")).is_ok());
}

#[test]
fn a_world_that_ends_leaves_nothing() {
    let (world, seen) = world(5, 2, 2);
    let outcome = ask(&seen.messenger(1, 0).expect("runs"), 2, Verb::ReadReq, b"x");
    assert!(wait(&world, &outcome).is_ok());
    drop(outcome);
    seen.messengers.borrow_mut().clear();
    assert_eq!(world.end(), 0);
}
