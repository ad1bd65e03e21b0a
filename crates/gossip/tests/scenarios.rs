//! One gossiper, step by step: the rules that a ring which works does not show.

use gossip::*;
use types::{Address, Token};

const START: i64 = 1_700_000_000_000;
const GENERATION: i32 = 1_700_000_000;
const DAY: u64 = 86_400;

fn node(host: u8) -> Address {
    Address::new([127, 0, 0, host], 7000)
}

/// A state with some values.
fn state(generation: i32, version: i32, values: &[(AppState, &str)]) -> EndpointState {
    let mut state = EndpointState::new(HeartBeat { generation, version });
    for (at, (kind, value)) in values.iter().enumerate() {
        state.values.insert(*kind, Versioned::new(*value, at as i32 + 1));
    }
    state
}

fn normal(generation: i32, version: i32) -> EndpointState {
    state(
        generation,
        version,
        &[(AppState::STATUS_WITH_PORT, "NORMAL,1"), (AppState::HOST_ID, "h")],
    )
}

/// A gossiper at 127.0.0.1 and its clock.
struct One {
    gossiper: Gossiper,
    seconds: u64,
}

impl One {
    fn new(seeds: &[u8]) -> Self {
        let config = Config::new(node(1), "Test Cluster", seeds.iter().copied().map(node));
        Self { gossiper: Gossiper::new(config), seconds: 1 }
    }

    /// One that takes part, and has spoken.
    fn running() -> Self {
        let mut one = Self::new(&[9]);
        one.start();
        one.step(Event::Tick);
        one
    }

    fn now(&self) -> Now {
        let nanos = self.seconds * 1_000_000_000;
        Now { nanos, unix_millis: START + self.seconds as i64 * 1000 }
    }

    fn step(&mut self, event: Event) -> Vec<Effect> {
        self.gossiper.step(self.now(), event, &mut || 0)
    }

    fn start(&mut self) {
        let states = vec![(AppState::STATUS_WITH_PORT, "NORMAL,1".to_owned())];
        self.step(Event::Start { generation: GENERATION, states });
    }

    fn receive(&mut self, from: u8, message: Message) -> Vec<Effect> {
        self.step(Event::Received { from: node(from), message })
    }

    fn hear(&mut self, states: impl IntoIterator<Item = (u8, EndpointState)>) -> Vec<Effect> {
        let states = states.into_iter().map(|(host, state)| (node(host), state)).collect();
        self.receive(2, Message::Ack2(states))
    }

    /// Makes a node known and up, with signs of life each second up to now.
    fn bring_up(&mut self, host: u8) {
        self.hear([(host, normal(GENERATION, 1))]);
        self.step(Event::Member(node(host), true));
        self.step(Event::EchoAnswered(node(host)));
        assert!(self.gossiper.is_up(node(host)));
    }

    /// Seconds go by.
    fn wait(&mut self, seconds: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        for _ in 0..seconds {
            self.seconds += 1;
            effects.extend(self.step(Event::Tick));
        }
        effects.retain(|effect| !matches!(effect, Effect::Send(..)));
        effects
    }
}

fn syn(digests: Vec<Digest>) -> Syn {
    let partitioner = "org.apache.cassandra.dht.Murmur3Partitioner".to_owned();
    Syn { cluster: "Test Cluster".to_owned(), partitioner, digests }
}

#[test]
fn who_is_heard_of_is_up_once_it_answers() {
    let mut one = One::running();
    let effects = one.hear([(3, normal(GENERATION, 5))]);
    assert_eq!(effects, [Effect::Send(node(3), Message::Echo), Effect::Joined(node(3))]);
    assert!(!one.gossiper.is_up(node(3)));
    // one echo at a time
    assert_eq!(one.hear([(3, normal(GENERATION, 6))]), []);
    one.step(Event::EchoFailed(node(3)));
    assert_eq!(one.hear([(3, normal(GENERATION, 7))]), [Effect::Send(node(3), Message::Echo)]);
    assert_eq!(one.step(Event::EchoAnswered(node(3))), [Effect::Up(node(3))]);
    assert_eq!(one.step(Event::EchoAnswered(node(3))), []);
    // it starts again
    let effects = one.hear([(3, normal(GENERATION + 9, 1))]);
    let again = [
        Effect::Down(node(3)),
        Effect::Restarted(node(3)),
        Effect::Send(node(3), Message::Echo),
        Effect::Joined(node(3)),
    ];
    assert_eq!(effects, again);
    // older news are none, and one from a year ahead is not believed
    assert_eq!(one.hear([(3, normal(GENERATION, 99))]), []);
    let effects = one.hear([(3, normal(GENERATION + 366 * DAY as i32, 1))]);
    assert_eq!((effects.len(), refusals(&effects).len()), (1, 1));
}

#[test]
fn news_tell_what_a_node_is_first() {
    let mut one = One::running();
    one.bring_up(3);
    let values = [
        (AppState::LOAD, "1.0"),
        (AppState::STATUS, "LEAVING,1"),
        (AppState::STATUS_WITH_PORT, "LEAVING,1"),
    ];
    let mut news = state(GENERATION, 20, &values);
    news.values.values_mut().for_each(|value| value.version += 10);
    let effects = one.hear([(3, news)]);
    let wanted = [AppState::STATUS_WITH_PORT, AppState::LOAD];
    assert_eq!(effects, wanted.map(|kind| Effect::Changed(node(3), kind)));
    let known = &one.gossiper.peer(node(3)).expect("known").state;
    assert_eq!((known.status(), known.heartbeat.version), (Status::Leaving, 20));
    assert_eq!(known.get(AppState::STATUS), None, "the same without a port");
}

#[test]
fn answers_from_before_the_first_word_are_not_heard() {
    let mut one = One::new(&[9]);
    one.start();
    let ack = || Message::Ack(Ack { states: [(node(3), normal(1, 1))].into(), wanted: vec![] });
    assert_eq!(one.receive(3, ack()), []);
    assert_eq!(one.gossiper.peers().count(), 0);
    one.step(Event::Tick);
    assert!(one.receive(3, ack()).contains(&Effect::Joined(node(3))));
}

#[test]
fn an_echo_says_nothing_of_a_later_start() {
    let mut one = One::running();
    one.hear([(3, normal(GENERATION, 5))]);
    // it starts again, as one that another replaces, which is never up
    let hibernating = state(GENERATION + 1, 1, &[(AppState::STATUS_WITH_PORT, "hibernate,true")]);
    one.hear([(3, hibernating)]);
    assert_eq!(one.step(Event::EchoAnswered(node(3))), []);
    assert!(!one.gossiper.is_up(node(3)));
}

#[test]
fn a_round_tells_what_is_known_better() {
    let mut one = One::running();
    one.bring_up(3);
    one.bring_up(4);
    let digest = |host: u8, generation: i32, max_version: i32| {
        let endpoint = node(host);
        Digest { endpoint, generation, max_version }
    };
    let answer = |one: &mut One, digests: Vec<Digest>| {
        let effects = one.receive(2, Message::Syn(syn(digests)));
        match effects.into_iter().next() {
            Some(Effect::Send(to, Message::Ack(ack))) if to == node(2) => Some(ack),
            None => None,
            other => panic!("{other:?}"),
        }
    };
    // 3: an equal version (2, of its host id); 4: a lower generation; 5: unknown
    let digests =
        vec![digest(3, GENERATION, 2), digest(4, GENERATION - 1, 50), digest(5, GENERATION, 7)];
    let ack = answer(&mut one, digests).expect("an answer");
    assert_eq!(ack.wanted, [digest(5, GENERATION, 0)]);
    assert_eq!(ack.states.keys().copied().collect::<Vec<_>>(), [node(4)]);
    assert_eq!(ack.states[&node(4)].values.len(), 2, "all of it");
    // more of 3 is wanted, from what is known on; of 4 some is not known to the other
    let digests = vec![digest(3, GENERATION, 9), digest(4, GENERATION, 1)];
    let ack = answer(&mut one, digests).expect("an answer");
    assert_eq!(ack.wanted, [digest(3, GENERATION, 2)]);
    assert_eq!(ack.states[&node(4)].values.len(), 1);
    // of itself it tells everything, whatever the other knows
    let version = one.gossiper.local().max_version();
    let ack = answer(&mut one, vec![digest(1, GENERATION, version + 7)]).expect("an answer");
    assert_eq!(&ack.states[&node(1)], one.gossiper.local());
    // an empty one asks for all
    let ack = answer(&mut one, vec![]).expect("an answer");
    assert_eq!(ack.states.len(), 3);
    // what is asked for is sent
    let ack = Ack { wanted: vec![digest(3, GENERATION, 1), digest(8, 1, 0)], states: [].into() };
    let effects = one.receive(2, Message::Ack(ack));
    let Some(Effect::Send(_, Message::Ack2(states))) = effects.first() else {
        panic!("{effects:?}")
    };
    assert_eq!(states.keys().copied().collect::<Vec<_>>(), [node(3)]);
}

#[test]
fn silence_is_death_unless_we_slept() {
    let mut one = One::running();
    one.bring_up(3);
    for version in 0..10 {
        one.wait(1);
        one.hear([(3, normal(GENERATION, 10 + version))]);
    }
    assert_eq!(one.wait(10), []);
    // a minute of our own sleep is none of its silence, until five seconds later
    one.seconds += 60;
    assert_eq!(one.wait(5), []);
    assert_eq!(one.wait(1), [Effect::Down(node(3))]);
    assert_eq!(one.gossiper.downtime(node(3), one.now()), Some(0));
    // a sign of life, and it is asked
    let effects = one.hear([(3, normal(GENERATION, 50))]);
    assert_eq!(effects, [Effect::Send(node(3), Message::Echo)]);
    assert_eq!(one.step(Event::EchoAnswered(node(3))), [Effect::Up(node(3))]);
    assert_eq!(one.gossiper.downtime(node(3), one.now()), None);
}

#[test]
fn a_node_that_stops_says_so() {
    let mut one = One::running();
    one.bring_up(3);
    let status = AppState::STATUS_WITH_PORT;
    // a word from before its start is not heard
    let late = Message::Shutdown { created: START - 1 };
    assert_eq!(one.receive(3, late), []);
    let stopped = Message::Shutdown { created: START + 1 };
    let effects = one.receive(3, stopped);
    assert_eq!(effects, [Effect::Down(node(3)), Effect::Changed(node(3), status)]);
    // what was on its way from before does not bring it back
    assert_eq!(one.hear([(3, normal(GENERATION, 500))]), [Effect::Send(node(3), Message::Echo)]);
    assert_eq!(one.gossiper.peer(node(3)).expect("known").state.status(), Status::Shutdown);
    // nor does it that it still answers: nothing would tell later that it is silent
    assert_eq!(one.step(Event::EchoAnswered(node(3))), []);
    assert!(!one.gossiper.is_up(node(3)));
    one.hear([(3, normal(GENERATION + 9, 1))]);
    assert_eq!(one.step(Event::EchoAnswered(node(3))), [Effect::Up(node(3))]);

    let mut one = One::running();
    one.bring_up(4);
    let effects = one.step(Event::Stop);
    let told = effects.iter().map(|effect| match effect {
        Effect::Send(to, Message::Shutdown { created }) if *created >= START => *to,
        other => panic!("{other:?}"),
    });
    assert_eq!(told.collect::<Vec<_>>(), [node(4)]);
    assert_eq!(one.gossiper.local().status(), Status::Shutdown);
    assert_eq!(one.gossiper.local().get(AppState::RPC_READY), Some("false"));
    assert!(!one.gossiper.is_running());
    assert_eq!(one.receive(4, Message::Syn(syn(vec![]))), []);

    // one that is joining just goes
    let mut joining = One::running();
    joining.bring_up(4);
    joining.step(Event::Publish(vec![(status, "BOOT,1".to_owned())]));
    assert_eq!(joining.step(Event::Stop), []);
}

#[test]
fn what_was_removed_is_not_heard_of_for_a_minute() {
    let mut one = One::running();
    one.bring_up(3);
    one.step(Event::Member(node(3), false));
    assert_eq!(one.step(Event::Remove(node(3))), [Effect::Removed(node(3))]);
    assert!(!one.gossiper.is_up(node(3)));
    assert_eq!(one.hear([(3, normal(GENERATION + 1, 1))]), []);
    assert_eq!(one.wait(60), []);
    assert!(one.gossiper.is_quarantined(node(3)));
    one.wait(1);
    assert!(!one.gossiper.is_quarantined(node(3)));
    assert!(one.hear([(3, normal(GENERATION + 1, 1))]).contains(&Effect::Joined(node(3))));
    // one that another took the place of, for twice as long
    one.step(Event::Replaced(node(3)));
    assert!(one.gossiper.peer(node(3)).is_none());
    one.wait(120);
    assert!(one.gossiper.is_quarantined(node(3)));
    one.wait(1);
    assert!(!one.gossiper.is_quarantined(node(3)));
}

#[test]
fn guests_are_forgotten_when_they_are_silent() {
    let mut one = One::running();
    let joining = state(GENERATION, 1, &[(AppState::STATUS_WITH_PORT, "BOOT,1")]);
    one.hear([(3, state(GENERATION, 1, &[])), (4, joining), (5, normal(GENERATION, 1))]);
    one.step(Event::Member(node(5), true));
    assert_eq!(one.wait(30), []);
    assert_eq!(one.wait(1), [Effect::Removed(node(3))]);
    assert_eq!(one.wait(269), []);
    assert_eq!(one.wait(1), [Effect::Removed(node(4))]);
    assert_eq!(one.wait(1000), []);
    assert!(one.gossiper.peer(node(5)).is_some());
}

#[test]
fn one_that_left_is_forgotten_when_it_said() {
    let mut one = One::running();
    let left = Status::left(1, START + 3000 * 1000);
    one.hear([(3, state(GENERATION, 1, &[(AppState::STATUS_WITH_PORT, &left)]))]);
    one.wait(2998);
    assert!(one.gossiper.peer(node(3)).is_some());
    one.wait(3);
    assert!(one.gossiper.peer(node(3)).is_none());
}

#[test]
fn assassination() {
    let mut one = One::running();
    one.hear([(3, {
        let tokens = write_tokens(&[Token(77)]);
        state(
            GENERATION,
            1,
            &[(AppState::STATUS_WITH_PORT, "NORMAL,77"), (AppState::TOKENS, &tokens)],
        )
    })]);
    one.bring_up(4);
    one.step(Event::Member(node(3), true));
    for host in [3, 4, 5] {
        one.step(Event::Assassinate { node: node(host), token: Token(5) });
    }
    // one that nobody knows is out at once
    let unknown = one.gossiper.peer(node(5)).expect("now known").state.clone();
    assert_eq!(unknown.heartbeat.version, 9999);
    assert!(unknown.status().is_dead());
    one.wait(28);
    one.hear([(4, normal(GENERATION, 10))]);
    assert!(!one.gossiper.peer(node(3)).expect("known").state.status().is_dead());
    let effects = one.wait(2);
    assert!(effects.contains(&Effect::StillAlive(node(4))), "{effects:?}");
    assert!(effects.contains(&Effect::Restarted(node(3))));
    let out = &one.gossiper.peer(node(3)).expect("known").state;
    assert_eq!(out.heartbeat.generation, GENERATION + 1);
    let status = out.get(AppState::STATUS_WITH_PORT).expect("a status");
    assert!(status.starts_with("LEFT,77,"), "{status}");
    let expires = out.status().expires().expect("a time");
    assert_eq!(expires, one.now().unix_millis + 3 * DAY as i64 * 1000);
}

/// Nobody speaks to it, and an answer holds what it asks for alone.
#[test]
fn who_hibernates_asks_for_those_that_the_ring_named() {
    for (status, asks) in [(Status::HIBERNATE.to_owned(), true), (Status::boot(1), false)] {
        let mut one = One::new(&[8]);
        one.step(Event::ShadowRound { peers: [].into() });
        let states: States = [(node(8), normal(1, 1)), (node(9), normal(1, 1))].into();
        one.receive(8, Message::Ack(Ack { wanted: vec![], states }));
        let states = vec![(AppState::STATUS_WITH_PORT, status)];
        one.step(Event::Start { generation: GENERATION, states });
        let effects = one.step(Event::Tick);
        let syn = effects.iter().find_map(|effect| match effect {
            Effect::Send(_, Message::Syn(syn)) => Some(syn.clone()),
            _ => None,
        });
        let digests = syn.expect("it speaks to its seed").digests;
        let unknown = |n| Digest { endpoint: node(n), generation: 0, max_version: 0 };
        assert_eq!(digests.contains(&unknown(8)), asks);
        assert_eq!(digests.contains(&unknown(9)), asks);
        // once they are known they are no more asked for so
        let states: States = [(node(8), normal(1, 1)), (node(9), normal(1, 1))].into();
        one.receive(8, Message::Ack(Ack { wanted: vec![], states }));
        let syns = one.step(Event::Tick).into_iter().filter_map(|effect| match effect {
            Effect::Send(_, Message::Syn(syn)) => Some(syn),
            _ => None,
        });
        assert!(syns.into_iter().all(|syn| !syn.digests.contains(&unknown(9))));
    }
}

#[test]
fn the_shadow_round() {
    // nobody to ask
    let mut alone = One::new(&[1]);
    let nobody = || Effect::ShadowRound(States::new());
    assert_eq!(alone.step(Event::ShadowRound { peers: [].into() }), [nobody()]);

    let asked = |effects: Vec<Effect>| -> Vec<Address> {
        let syns = effects.iter().map(|effect| match effect {
            Effect::Send(to, Message::Syn(syn)) if syn.digests.is_empty() => *to,
            other => panic!("{other:?}"),
        });
        syns.collect()
    };
    // seeds first, and each second again; others after five
    let mut one = One::new(&[8, 9]);
    let peers = [node(4)].into();
    assert_eq!(asked(one.step(Event::ShadowRound { peers })), [node(8), node(9)]);
    one.seconds += 4;
    assert_eq!(asked(one.step(Event::Tick)), [node(8), node(9)]);
    assert_eq!(one.step(Event::Tick), []);
    one.seconds += 1;
    assert_eq!(asked(one.step(Event::Tick)), [node(4), node(8), node(9)]);
    // others in their shadow rounds are told so, and those that are not, nothing
    let effects = one.receive(8, Message::Syn(syn(vec![])));
    assert_eq!(effects, [Effect::Send(node(8), Message::Ack(Ack::default()))]);
    let digest = Digest { endpoint: node(8), generation: 1, max_version: 1 };
    assert_eq!(one.receive(8, Message::Syn(syn(vec![digest]))), []);
    // an answer that knows of this node only its address is not enough
    let ack = |states: States| Message::Ack(Ack { wanted: vec![], states });
    let bare = [(node(1), EndpointState::new(HeartBeat::NONE)), (node(8), normal(1, 1))];
    assert_eq!(one.receive(8, ack(bare.into())), []);
    let states: States = [(node(1), normal(1, 1)), (node(8), normal(1, 1))].into();
    assert_eq!(one.receive(8, ack(states.clone())), [Effect::ShadowRound(states)]);
    assert_eq!(one.step(Event::Tick), []);

    // all seeds are in theirs
    let mut one = One::new(&[1, 8, 9]);
    one.step(Event::ShadowRound { peers: [].into() });
    assert_eq!(one.receive(8, Message::Ack(Ack::default())), []);
    assert_eq!(one.receive(9, Message::Ack(Ack::default())), [nobody()]);

    // who is none waits until one is out of it
    let mut one = One::new(&[8, 9]);
    one.step(Event::ShadowRound { peers: [].into() });
    assert_eq!(one.receive(8, Message::Ack(Ack::default())), []);
    assert_eq!(one.receive(9, Message::Ack(Ack::default())), []);
    let states: States = [(node(8), normal(1, 1))].into();
    let ack = Message::Ack(Ack { wanted: vec![], states: states.clone() });
    assert_eq!(one.receive(8, ack), [Effect::ShadowRound(states)]);

    // a seed goes on alone after the ring delay; another gives up after twice that
    for (seeds, patience, end) in
        [(&[1, 9][..], 30, nobody()), (&[9][..], 60, Effect::ShadowRoundFailed)]
    {
        let mut one = One::new(seeds);
        one.step(Event::ShadowRound { peers: [].into() });
        assert_eq!(one.wait(patience), []);
        assert_eq!(one.wait(1), [end]);
    }
}

#[test]
fn who_is_only_known_from_before_is_told_its_name() {
    let mut one = One::running();
    let values = vec![(AppState::HOST_ID, "its host id".to_owned())];
    one.step(Event::Saved { node: node(3), values });
    assert!(!one.gossiper.is_up(node(3)));
    let effects = one.receive(3, Message::Syn(syn(vec![])));
    let Some(Effect::Send(_, Message::Ack(ack))) = effects.first() else { panic!("{effects:?}") };
    assert_eq!(ack.states[&node(3)].get(AppState::HOST_ID), Some("its host id"));
    // it is no news for others
    assert_eq!(one.gossiper.peer(node(3)).expect("known").state.values.len(), 0);
    one.hear([(3, normal(GENERATION, 1))]);
    let effects = one.receive(2, Message::Syn(syn(vec![])));
    let Some(Effect::Send(_, Message::Ack(ack))) = effects.first() else { panic!("{effects:?}") };
    assert_eq!(ack.states[&node(3)].get(AppState::HOST_ID), Some("h"));
}

#[test]
fn whom_to_speak_to() {
    let targets = |one: &mut One, random: u64| {
        let effects = one.gossiper.step(one.now(), Event::Tick, &mut || random);
        let to = effects.into_iter().filter_map(|effect| match effect {
            Effect::Send(to, Message::Syn(_)) => Some(to),
            _ => None,
        });
        to.collect::<Vec<_>>()
    };
    let mut one = One::new(&[1, 9]);
    one.start();
    // nobody is up: a seed
    assert_eq!(targets(&mut one, u64::MAX), [node(9)]);
    one.hear([(3, normal(GENERATION, 1)), (4, normal(GENERATION, 1))]);
    one.step(Event::EchoAnswered(node(3)));
    // one that is up; of those that are down (4) and the seeds as chance will have it
    assert_eq!(targets(&mut one, u64::MAX), [node(3)]);
    assert_eq!(targets(&mut one, 0), [node(3), node(4), node(9)]);
    // never one that left
    let left = state(GENERATION + 1, 1, &[(AppState::STATUS_WITH_PORT, "LEFT,1,2700000000000")]);
    one.hear([(4, left)]);
    assert_eq!(targets(&mut one, 0), [node(3), node(9)]);
    // spoken to a seed: no other
    one.step(Event::Seeds([node(3)].into()));
    assert_eq!(targets(&mut one, 0), [node(3)]);
}

/// What a step was not believed for.
fn refusals(effects: &[Effect]) -> Vec<&Refusal> {
    let mut refusals = Vec::new();
    for effect in effects {
        if let Effect::Refused(_, refusal) = effect {
            refusals.push(refusal);
        }
    }
    refusals
}

fn heard(one: &mut One, states: States) -> Vec<Effect> {
    one.step(Event::Received { from: node(9), message: Message::Ack2(states) })
}

#[test]
fn rings_of_others_are_refused_and_told_of() {
    let mut one = One::running();
    for (cluster, partitioner) in [
        ("Another", "org.apache.cassandra.dht.Murmur3Partitioner"),
        ("Test Cluster", "org.apache.cassandra.dht.RandomPartitioner"),
        (&"x".repeat(60_000), ""),
    ] {
        let (cluster, partitioner) = (cluster.to_owned(), partitioner.to_owned());
        let digests = vec![Digest { endpoint: node(7), generation: GENERATION, max_version: 5 }];
        let message = Message::Syn(Syn { cluster, partitioner, digests });
        let effects = one.step(Event::Received { from: node(7), message });
        assert_eq!((effects.len(), refusals(&effects).len()), (1, 1), "{effects:?}");
        let said = refusals(&effects)[0].to_string();
        assert!(said.len() < 200 && said.contains("this node's is"), "{said}");
    }
    assert!(one.gossiper.peer(node(7)).is_none());
}

/// Neither of a node that is known nor of one that is not: the one that is meant could not be heard
/// any more.
#[test]
fn nobody_starts_a_year_from_now() {
    let mut one = One::running();
    heard(&mut one, [(node(2), normal(GENERATION, 5))].into());
    let known = one.gossiper.peer(node(2)).expect("heard of").state.clone();
    let now = one.now().unix_millis / 1000;
    for generation in [i32::MAX, (now + 366 * DAY as i64) as i32] {
        one.seconds += 1;
        let states = [2, 3].map(|host| (node(host), normal(generation, 5)));
        let effects = heard(&mut one, states.into());
        assert!(matches!(refusals(&effects)[..], [Refusal::Generation { .. }]), "{effects:?}");
        assert_eq!(one.gossiper.peer(node(2)).map(|peer| &peer.state), Some(&known));
        assert!(one.gossiper.peer(node(3)).is_none());
    }
    let soon = (now + 300 * DAY as i64) as i32;
    assert_eq!(refusals(&heard(&mut one, [(node(3), normal(soon, 5))].into())).len(), 0);
    assert!(one.gossiper.peer(node(3)).is_some());
}

/// Who tells of ever more nodes is believed up to a point; those that are known go on to be heard.
#[test]
fn the_memory_for_nodes_is_bounded() {
    let mut one = One::running();
    heard(&mut one, [(node(2), normal(GENERATION, 5))].into());
    let strangers = (0..40_000u32).map(|n| {
        let node = Address::new(std::net::Ipv4Addr::from(0x0a00_0000 + n), 7000);
        (node, normal(GENERATION, 5))
    });
    let effects = heard(&mut one, strangers.collect());
    let known = one.gossiper.peers().count();
    assert!((10_000..20_000).contains(&known), "{known}");
    let nodes = 40_001 - known;
    assert_eq!(refusals(&effects), [&Refusal::TooMuch { nodes }]);
    one.seconds += 1;
    let effects = heard(&mut one, [(node(2), normal(GENERATION, 9))].into());
    assert_eq!(refusals(&effects).len(), 0);
    let version = one.gossiper.peer(node(2)).map(|peer| peer.state.heartbeat.version);
    assert_eq!(version, Some(9));
}

/// A node that left, and is to be remembered until the end of time, is remembered for three days.
#[test]
fn nobody_is_remembered_for_ever() {
    let mut one = One::running();
    let left = state(GENERATION, 5, &[(AppState::STATUS_WITH_PORT, &Status::left(1, i64::MAX))]);
    heard(&mut one, [(node(2), left)].into());
    one.step(Event::Tick);
    assert!(one.gossiper.peer(node(2)).is_some());
    one.seconds += 3 * DAY + 2;
    one.step(Event::Tick);
    assert!(one.gossiper.peer(node(2)).is_none());
}

#[test]
fn who_has_heard_what_this_node_said_last() {
    let mut one = One::running();
    one.bring_up(3);
    one.bring_up(4);
    one.step(Event::Publish(vec![(AppState::STATUS_WITH_PORT, "BOOT,1".to_owned())]));
    let version = one.gossiper.version();
    let unaware = |one: &One| one.gossiper.unaware(version).collect::<Vec<_>>();
    assert_eq!(unaware(&one), [node(3), node(4)]);
    // both are told in each round, until they say that they know
    let told = |effects: Vec<Effect>| {
        let to = effects.into_iter().filter_map(|effect| match effect {
            Effect::Send(to, Message::Syn(_)) => Some(to),
            _ => None,
        });
        to.collect::<std::collections::BTreeSet<_>>()
    };
    one.step(Event::Tell(version));
    assert!(told(one.step(Event::Tick)).is_superset(&[node(3), node(4)].into()));
    let own = one.gossiper.local().heartbeat;
    let digest =
        |max_version: i32, generation: i32| Digest { endpoint: node(1), generation, max_version };
    // of an earlier start, or of less than that
    one.receive(3, Message::Syn(syn(vec![digest(version, own.generation - 1)])));
    one.receive(3, Message::Syn(syn(vec![digest(version - 1, own.generation)])));
    assert_eq!(unaware(&one), [node(3), node(4)]);
    one.receive(3, Message::Syn(syn(vec![digest(version, own.generation)])));
    assert_eq!(unaware(&one), [node(4)]);
    // who wants more says how much it has
    let wanted = vec![digest(version, own.generation)];
    one.receive(4, Message::Ack(Ack { wanted, states: States::new() }));
    assert_eq!(unaware(&one), []);
    // who wants all of it had forgotten this node; one that never knew it had not
    let all = || Message::Ack(Ack { wanted: vec![digest(0, own.generation)], ..Ack::default() });
    one.receive(4, all());
    one.receive(4, all());
    one.receive(5, all());
    assert_eq!([3, 4, 5].map(|host| one.gossiper.times_forgotten(node(host))), [0, 1, 0]);
    assert_eq!(unaware(&one), [node(4)]);
    one.receive(4, Message::Syn(syn(vec![digest(version, own.generation)])));
    assert_eq!(unaware(&one), []);
    // who starts again knows nothing
    one.hear([(3, normal(GENERATION + 1, 5))]);
    one.bring_up(3);
    assert_eq!(unaware(&one), [node(3)]);
}

#[test]
fn a_node_is_removed_by_another() {
    let mut one = One::running();
    one.hear([(3, normal(GENERATION, 10))]);
    let (host, by) = ("h".to_owned(), "me".to_owned());
    let said = |one: &One, kind| {
        let state = &one.gossiper.peer(node(3)).expect("known").state;
        (state.heartbeat.generation, state.get(kind).unwrap_or_default().to_owned())
    };
    let effects = one.step(Event::Removing { node: node(3), host: host.clone(), by });
    assert!(effects.contains(&Effect::Joined(node(3))), "{effects:?}");
    assert_eq!(said(&one, AppState::STATUS_WITH_PORT), (GENERATION + 1, "removing,h".to_owned()));
    assert_eq!(said(&one, AppState::REMOVAL_COORDINATOR).1, "REMOVER,me");
    assert!(!one.gossiper.is_up(node(3)));
    one.step(Event::RemovedFromRing { node: node(3), host });
    let (generation, status) = said(&one, AppState::STATUS_WITH_PORT);
    let expires = one.now().unix_millis + 3 * DAY as i64 * 1000;
    assert_eq!((generation, status), (GENERATION + 2, format!("removed,h,{expires}")));
    // of one that nobody knows nothing is said
    let unknown = Event::RemovedFromRing { node: node(7), host: "x".to_owned() };
    assert_eq!(one.step(unknown), []);
}
