//! Walking a trie in order, either way.

use std::rc::Rc;

use super::node::{Node, Search};
use crate::error::{Error, Result};

/// Nodes on a path. Keys are 64 KiB a component at most, and nearly twice as long where they are
/// escaped.
const DEPTH_MAX: usize = 1 << 22;
/// No payload is longer: an offset of 8 bytes and a deletion of 12.
const PAYLOAD_MAX: usize = 20;

/// Where the bytes of a file with tries come from.
pub trait Pages {
    /// What reading them may fail with.
    type Error;

    /// Bytes of the file that hold those from `position` to the end of its page: where they start,
    /// and they.
    fn page(
        &self,
        position: u64,
    ) -> impl Future<Output = std::result::Result<(u64, Rc<Vec<u8>>), Self::Error>>;

    /// Which component it is.
    fn component(&self) -> &'static str;

    /// The error of a file that contradicts itself.
    fn corrupt(&self, error: Error) -> Self::Error;
}

/// A node on the path from the root.
#[derive(Clone, Copy, Debug)]
struct Frame {
    position: u64,
    /// The place of the child that the path goes on to.
    place: usize,
}

/// A place in a trie: at an entry, or nowhere.
#[derive(Debug)]
pub struct TrieCursor {
    root: u64,
    /// The path to the entry; empty if the cursor is nowhere.
    path: Vec<Frame>,
    /// The page that was last looked at.
    page: (u64, Rc<Vec<u8>>),
}

/// What a walk gives, or why the file could not be read.
type Walked<T, P> = std::result::Result<T, <P as Pages>::Error>;

impl TrieCursor {
    /// A cursor over the trie with this root; nowhere yet. All its walks are to be given pages of
    /// the same file.
    pub fn new(root: u64) -> Self {
        Self { root, path: Vec::new(), page: (0, Rc::default()) }
    }

    /// The payload of the entry that is a prefix of `key` and ends in a leaf, or all of it: the
    /// only entry that may stand for the key in a trie of shortest unique prefixes.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn exact<P: Pages>(
        &mut self,
        pages: &P,
        key: &[u8],
    ) -> Walked<Option<(u8, Vec<u8>)>, P> {
        let mut position = self.root;
        let mut key = key.iter();
        loop {
            self.load(pages, position).await?;
            let node = self.node(pages, position)?;
            let byte = key.next();
            match byte.map(|byte| node.search(*byte)) {
                Some(Search::At(place)) => match child(pages, &node, place)? {
                    Some(child) => position = child,
                    None => return Ok(None),
                },
                Some(Search::Before(_)) if node.has_children() => return Ok(None),
                _ => return Ok(node.payload().map(owned)),
            }
        }
    }

    /// Goes to the last entry that is not after `key`, a prefix coming before what it is a prefix
    /// of. `false`, and nowhere, if there is none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn floor<P: Pages>(&mut self, pages: &P, key: &[u8]) -> Walked<bool, P> {
        self.path.clear();
        self.push(pages, self.root)?;
        let mut key = key.iter();
        // all children of the last node on the path that are below this place come before the key
        let below = loop {
            let Some(Frame { position, .. }) = self.path.last().copied() else { return Ok(false) };
            self.load(pages, position).await?;
            let node = self.node(pages, position)?;
            match key.next().map(|byte| node.search(*byte)) {
                None => break 0,
                Some(Search::Before(place)) => break place,
                Some(Search::At(place)) => match child(pages, &node, place)? {
                    Some(child) => {
                        self.stand_at(place);
                        self.push(pages, child)?;
                    }
                    None => break place,
                },
            }
        };
        self.last_below(pages, below).await
    }

    /// Goes to the first entry. `false` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn first<P: Pages>(&mut self, pages: &P) -> Walked<bool, P> {
        self.path.clear();
        self.push(pages, self.root)?;
        self.descend_to_first(pages).await
    }

    /// Goes to the next entry. `false`, and nowhere, if there is none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn next<P: Pages>(&mut self, pages: &P) -> Walked<bool, P> {
        let mut from = 0;
        while let Some(Frame { position, .. }) = self.path.last().copied() {
            self.load(pages, position).await?;
            let node = self.node(pages, position)?;
            let next = node.child_from(pages.component(), from);
            match next.map_err(|e| pages.corrupt(e))? {
                Some((place, child)) => {
                    self.stand_at(place);
                    self.push(pages, child)?;
                    return self.descend_to_first(pages).await;
                }
                None => {
                    self.path.pop();
                    from = self.path.last().map_or(0, |frame| frame.place + 1);
                }
            }
        }
        Ok(false)
    }

    /// Goes to the entry before. `false`, and nowhere, if there is none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn previous<P: Pages>(&mut self, pages: &P) -> Walked<bool, P> {
        self.path.pop();
        match self.path.last().map(|frame| frame.place) {
            Some(place) => self.last_below(pages, place).await,
            None => Ok(false),
        }
    }

    /// Flags and bytes of the payload where the cursor is; the bytes may go on beyond it.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn payload<P: Pages>(&mut self, pages: &P) -> Walked<Option<(u8, Vec<u8>)>, P> {
        let Some(Frame { position, .. }) = self.path.last().copied() else { return Ok(None) };
        self.load(pages, position).await?;
        Ok(self.node(pages, position)?.payload().map(owned))
    }

    /// From the last node of the path: the last entry below its children before `below`, or its
    /// own, or one before it.
    async fn last_below<P: Pages>(&mut self, pages: &P, mut below: usize) -> Walked<bool, P> {
        while let Some(Frame { position, .. }) = self.path.last().copied() {
            self.load(pages, position).await?;
            let node = self.node(pages, position)?;
            let lesser = node.child_below(pages.component(), below);
            if let Some((place, child)) = lesser.map_err(|e| pages.corrupt(e))? {
                self.stand_at(place);
                self.push(pages, child)?;
                return self.descend_to_last(pages).await;
            }
            if node.has_payload() {
                return Ok(true);
            }
            self.path.pop();
            below = self.path.last().map_or(0, |frame| frame.place);
        }
        Ok(false)
    }

    async fn descend_to_first<P: Pages>(&mut self, pages: &P) -> Walked<bool, P> {
        while let Some(Frame { position, .. }) = self.path.last().copied() {
            self.load(pages, position).await?;
            let node = self.node(pages, position)?;
            if node.has_payload() {
                return Ok(true);
            }
            let first = node.child_from(pages.component(), 0);
            let Some((place, child)) = first.map_err(|e| pages.corrupt(e))? else {
                return barren(pages, position);
            };
            self.stand_at(place);
            self.push(pages, child)?;
        }
        Ok(false)
    }

    async fn descend_to_last<P: Pages>(&mut self, pages: &P) -> Walked<bool, P> {
        while let Some(Frame { position, .. }) = self.path.last().copied() {
            self.load(pages, position).await?;
            let node = self.node(pages, position)?;
            let last = node.child_below(pages.component(), node.places());
            match last.map_err(|e| pages.corrupt(e))? {
                Some((place, child)) => {
                    self.stand_at(place);
                    self.push(pages, child)?;
                }
                None if node.has_payload() => return Ok(true),
                None => return barren(pages, position),
            }
        }
        Ok(false)
    }

    fn push<P: Pages>(&mut self, pages: &P, position: u64) -> Walked<(), P> {
        if self.path.len() >= DEPTH_MAX {
            return wrong(
                pages,
                format!("node at {position}: the trie is deeper than {DEPTH_MAX} nodes"),
            );
        }
        self.path.push(Frame { position, place: 0 });
        Ok(())
    }

    fn stand_at(&mut self, place: usize) {
        if let Some(frame) = self.path.last_mut() {
            frame.place = place;
        }
    }

    /// Makes sure that the page of a position is at hand.
    async fn load<P: Pages>(&mut self, pages: &P, position: u64) -> Walked<(), P> {
        let (start, bytes) = &self.page;
        let at_hand = position.checked_sub(*start).is_some_and(|at| at < bytes.len() as u64);
        if !at_hand {
            self.page = pages.page(position).await?;
        }
        Ok(())
    }

    /// The node at a position of the page that is at hand.
    fn node<P: Pages>(&self, pages: &P, position: u64) -> Walked<Node<'_>, P> {
        let (start, bytes) = &self.page;
        let bytes = bytes.get(position.saturating_sub(*start) as usize..).unwrap_or_default();
        let node: Result<Node<'_>> = Node::parse(pages.component(), bytes, position);
        node.map_err(|e| pages.corrupt(e))
    }
}

fn child<P: Pages>(pages: &P, node: &Node<'_>, place: usize) -> Walked<Option<u64>, P> {
    node.child(pages.component(), place).map_err(|e| pages.corrupt(e))
}

fn owned((flags, bytes): (u8, &[u8])) -> (u8, Vec<u8>) {
    (flags, bytes.get(..PAYLOAD_MAX).unwrap_or(bytes).to_vec())
}

fn barren<T, P: Pages>(pages: &P, position: u64) -> Walked<T, P> {
    wrong(pages, format!("node at {position}: it has neither children nor a payload"))
}

fn wrong<T, P: Pages>(pages: &P, what: String) -> Walked<T, P> {
    Err(pages.corrupt(Error::Corrupt { component: pages.component(), what }))
}
