//! A verb that an operator has a node carry out.

use std::cell::RefCell;
use std::rc::Rc;

use env::sim::World;

use super::member::Member;

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
