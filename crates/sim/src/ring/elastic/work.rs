//! An operation under way, as an operator sees it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use env::Instant;
use env::sim::World;

use super::kind::{Harm, Kind};
use crate::ring::member::Member;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The others are to see that a node is dead.
    AwaitDeath,
    /// A node comes in.
    Enter,
    /// A node leaves its place, or does something at its place.
    Act,
    /// A node that is dead is taken out.
    TakeOut,
    /// A node that was coming in is dead: the others are to forget it.
    BeForgotten,
    /// It was abandoned: the node is to be what it was.
    Stay,
}

/// A verb under way. The node may die meanwhile.
pub struct Asked {
    reply: Rc<RefCell<Option<(u8, String)>>>,
    node: usize,
    life: u64,
}

impl Asked {
    /// Asks a node to carry out a verb, if it serves.
    pub fn new(member: &Member, line: &str) -> Option<Self> {
        let way = member.way()?;
        let reply = Rc::new(RefCell::new(None));
        let theirs = Rc::clone(&reply);
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let verb = admin::Verb::parse(&words).ok()?;
        way.env.spawn(env::Class::Background, async move {
            let Some(node) = way.node.upgrade() else { return };
            let said = node.carry_out(verb).await;
            drop(node);
            *theirs.borrow_mut() = Some((said.exit, said.err + &said.out));
        });
        Some(Self { reply, node: member.number, life: member.life.get() })
    }

    /// What the node said; an error if it died before.
    pub fn answer(&self, world: &World, members: &[Rc<Member>]) -> Option<Result<String, String>> {
        if let Some((exit, text)) = &*self.reply.borrow() {
            return Some(if *exit == 0 { Ok(text.clone()) } else { Err(text.clone()) });
        }
        let member = &members[self.node];
        let is_gone = member.life.get() != self.life || !world.is_up(member.id);
        is_gone.then(|| Err("the node died".to_owned()))
    }
}

/// An operation under way.
pub struct Work {
    /// What it is.
    pub kind: Kind,
    /// The node that comes in, leaves, or does something.
    pub node: usize,
    /// A node that is dead.
    pub gone: Option<usize>,
    /// How far it is.
    pub phase: Phase,
    /// The verb under way.
    pub asked: Option<Asked>,
    /// Not before that it is tried again.
    pub again_at: Option<Instant>,
    /// How often it was tried again.
    pub tries: u32,
    /// What is to go wrong, and when.
    pub harm: Option<(Harm, Instant)>,
    /// Where a node moves.
    pub token: i64,
    /// Which attempt it is, of all of a world.
    pub attempt: u64,
    /// Attempts of others that all nodes saw under way at the same time.
    pub together: BTreeSet<u64>,
}
