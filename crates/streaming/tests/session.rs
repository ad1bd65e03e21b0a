//! Two sides of a session, whatever order things happen in.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use schema::TableId;
use streaming::session::{Effect, Event, Outgoing, Session, SessionId, State};
use streaming::wire::{Init, Message, Operation, Preview, Summary};
use types::{Address, Uuid};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];

fn id(peer: [u8; 4]) -> SessionId {
    SessionId { plan: Uuid(7), peer: Address::new(peer, 7000), session: 0 }
}

fn init(preview: Preview) -> Init {
    Init {
        from: Address::new(A, 7000),
        session: 0,
        plan: Uuid(7),
        operation: Operation::Rebuild,
        pending_repair: None,
        preview,
    }
}

type Files = Vec<(TableId, Vec<Outgoing>)>;

/// What a side has to do before the next thing happens to it.
struct Side {
    session: Session,
    gives: Files,
    /// Messages on the first connection, in order.
    inbox: VecDeque<Message>,
    /// What may happen next, in any order.
    events: Vec<Event>,
    adopted: Vec<TableId>,
    released: usize,
    is_over: bool,
}

impl Side {
    fn new(session: Session, gives: Files) -> Self {
        let (inbox, events, adopted) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { session, gives, inbox, events, adopted, released: 0, is_over: false }
    }
}

/// Does what a side's step asks for; `other` gets what it sends.
fn perform(side: &mut Side, other: &mut Side, effects: Vec<Effect>) {
    for effect in effects {
        match effect {
            Effect::Send(Message::Init(_)) => {}
            Effect::Send(message) => other.inbox.push_back(message),
            Effect::Choose(_) => side.events.push(Event::Chosen(side.gives.clone())),
            Effect::SendFiles => {
                for (table, files) in &side.gives {
                    let arrived = (0..).zip(files).map(|(sequence, file)| Event::Arrived {
                        table: *table,
                        sequence,
                        files: file.files,
                    });
                    other.events.extend(arrived);
                }
            }
            Effect::Release { .. } => side.released += 1,
            Effect::Adopt(table) => {
                side.adopted.push(table);
                side.events.push(Event::Adopted(table));
            }
            Effect::End => side.is_over = true,
        }
    }
}

fn table(number: u8) -> TableId {
    TableId([number; 16])
}

fn files(tables: &BTreeMap<u8, Vec<u32>>) -> Files {
    let of =
        |files: &Vec<u32>| files.iter().map(|files| Outgoing { files: *files, bytes: 9 }).collect();
    tables.iter().map(|(number, files)| (table(*number), of(files))).collect()
}

/// Runs both sides to their ends, where `choose` says what happens next.
fn run(gives: [Files; 2], mut choose: impl FnMut(usize) -> usize) -> [Side; 2] {
    let (session, effects) =
        Session::initiate(id(B), init(Preview::None), Vec::new(), gives[0].clone());
    let mut a = Side::new(session, gives[0].clone());
    let mut b = Side::new(Session::follow(id(A), &init(Preview::None)), gives[1].clone());
    perform(&mut a, &mut b, effects);
    loop {
        let mut may = Vec::new();
        for (at, side) in [&a, &b].into_iter().enumerate() {
            if !side.inbox.is_empty() {
                may.push((at, usize::MAX));
            }
            may.extend((0..side.events.len()).map(|event| (at, event)));
        }
        if may.is_empty() {
            return [a, b];
        }
        let (at, which) = may[choose(may.len()) % may.len()];
        let (side, other) = if at == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
        let event = match which {
            usize::MAX => Event::Message(side.inbox.pop_front().expect("a message")),
            which => side.events.swap_remove(which),
        };
        let effects = side.session.step(event);
        perform(side, other, effects);
    }
}

fn tables() -> impl Strategy<Value = BTreeMap<u8, Vec<u32>>> {
    prop::collection::btree_map(0u8..4, prop::collection::vec(1u32..9, 1..4), 0..3)
}

proptest! {
    #[test]
    fn both_sides_end_and_have_what_the_other_gave(
        first in tables(),
        second in tables(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 64),
    ) {
        let gives = [files(&first), files(&second)];
        let mut order = order.into_iter().cycle();
        let [a, b] = run(gives.clone(), |of| order.next().expect("endless").index(of));
        for (side, got, gave) in [(&a, &gives[1], &gives[0]), (&b, &gives[0], &gives[1])] {
            prop_assert_eq!(side.session.state(), &State::Complete);
            prop_assert!(side.is_over);
            let mut adopted = side.adopted.clone();
            adopted.sort();
            let wanted: Vec<_> = got.iter().map(|(table, _)| *table).collect();
            prop_assert_eq!(adopted, wanted);
            let sent: usize = gave.iter().map(|(_, files)| files.len()).sum();
            prop_assert_eq!(side.released, sent);
        }
    }
}

/// A follower that was asked for nothing and is to get one file of a table.
fn expecting(files: u32) -> Session {
    let mut session = Session::follow(id(A), &init(Preview::None));
    let summaries = vec![Summary { table: table(1), files, bytes: 1 }];
    session.step(Event::Message(Message::PrepareSyn { requests: Vec::new(), summaries }));
    session.step(Event::Chosen(Vec::new()));
    session
}

#[test]
fn a_file_that_comes_twice_fails_the_session() {
    let mut session = expecting(5);
    let arrived = || Event::Arrived { table: table(1), sequence: 0, files: 1 };
    session.step(arrived());
    session.step(arrived());
    assert!(matches!(session.state(), State::Failed(why) if why.contains("twice")));
}

#[test]
fn more_files_than_announced_fail_the_session() {
    let mut session = expecting(2);
    session.step(Event::Arrived { table: table(1), sequence: 0, files: 3 });
    assert!(matches!(session.state(), State::Failed(_)));
}

#[test]
fn a_file_of_another_table_fails_the_session() {
    let mut session = expecting(2);
    let effects = session.step(Event::Arrived { table: table(2), sequence: 0, files: 1 });
    assert_eq!(effects, [Effect::Send(Message::SessionFailed), Effect::End]);
}

#[test]
fn a_follower_completes_only_after_it_adopted() {
    let mut session = expecting(1);
    let effects = session.step(Event::Arrived { table: table(1), sequence: 0, files: 1 });
    assert!(!effects.contains(&Effect::Send(Message::Complete)), "{effects:?}");
    let effects = session.step(Event::Adopted(table(1)));
    assert_eq!(effects, [Effect::Send(Message::Complete), Effect::End]);
}

#[test]
fn a_connection_that_ends_early_fails_the_session_without_a_word() {
    let mut session = expecting(1);
    assert_eq!(session.step(Event::Closed("it broke".to_owned())), [Effect::End]);
    assert_eq!(session.step(Event::Adopted(table(1))), [], "it is over");
}

#[test]
fn messages_out_of_turn_fail_the_session() {
    let syn = || Message::PrepareSyn { requests: Vec::new(), summaries: Vec::new() };
    let out_of_turn = [Message::Complete, Message::PrepareSynAck { summaries: Vec::new() }, syn()];
    for message in out_of_turn {
        let mut session = expecting(1);
        session.step(Event::Message(message));
        assert!(matches!(session.state(), State::Failed(_)));
    }
}

#[test]
fn a_preview_sends_nothing() {
    let (mut session, _) = Session::initiate(id(B), init(Preview::All), Vec::new(), Vec::new());
    let summaries = vec![Summary { table: table(1), files: 3, bytes: 100 }];
    let effects = session.step(Event::Message(Message::PrepareSynAck { summaries }));
    assert_eq!(effects, [Effect::End]);
    assert_eq!(session.state(), &State::Complete);
}
