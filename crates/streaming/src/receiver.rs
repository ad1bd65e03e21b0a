//! Files that come.

use std::rc::Rc;

use env::{Class, Env};
use sstable::descriptor::{Component, Format};
use storage::shards::Remote;
use storage::{Engine, SectionBytes, SectionsError, SectionsOptions, WholeFile, write_sections};

use crate::ledger::Ledger;
use crate::progress::{Direction, FileKey};
use crate::session::{Event, SessionId};
use crate::sessions::{Sessions, Slot};
use crate::wire::{FileHeader, Input, Manifest, SectionError, Sections};
use crate::wire_input::WireInput;

/// Bytes that are written at once.
const PIECE_BYTES: u64 = 256 << 10;
/// Bytes after which the first shard is told how far a file is.
const TOLD_BYTES: u64 = 1 << 20;

/// Receives files, on each shard.
pub(crate) struct Receiver {
    env: Env,
    engine: Rc<Engine>,
    sessions: Remote<Sessions>,
    ledger: Remote<Ledger>,
}

impl Receiver {
    pub fn new(engine: &Rc<Engine>, sessions: Remote<Sessions>, ledger: Remote<Ledger>) -> Self {
        let engine = Rc::clone(engine);
        Self { env: engine.env().clone(), engine, sessions, ledger }
    }

    /// Takes a file whose header was read.
    ///
    /// # Errors
    /// If the connection is of no use any more.
    pub async fn receive(&self, header: FileHeader, input: &mut WireInput) -> Result<(), String> {
        let id = SessionId { plan: header.plan, peer: header.sender, session: header.session };
        let sent = header.clone();
        let begun =
            self.sessions.call_async(0, Class::Streaming, move |first: Rc<Sessions>| async move {
                let begun = first.begin_file(id, &sent).await;
                if let Err(why) = &begun {
                    first.event(id, Event::Broken(why.clone()));
                }
                begun
            });
        let slot = begun.await.map_err(|stopping| stopping.to_string())??;
        let came = match &header.whole {
            Some(whole) => self.whole(id, &header, whole, &slot, input).await.map(|()| true),
            None => self.sections(id, &header, &slot, input).await,
        };
        let ended = came.clone();
        let sent = header;
        let told =
            self.sessions.call_async(0, Class::Streaming, move |first: Rc<Sessions>| async move {
                first.end_file(id, &sent, &slot, ended).await;
            });
        told.await.map_err(|stopping| stopping.to_string())?;
        came.map(drop)
    }

    fn came(&self, id: SessionId, header: &FileHeader, bytes: u64) {
        let (table, sequence) = (header.table, header.sequence);
        let key = FileKey { direction: Direction::In, table, sequence };
        self.ledger.send(0, move |first| first.went_on(id, key, bytes));
    }

    async fn whole(
        &self,
        id: SessionId,
        header: &FileHeader,
        whole: &Manifest,
        slot: &Slot,
        input: &mut WireInput,
    ) -> Result<(), String> {
        let mut file = WholeFile::new(&self.env, slot.place.clone());
        let broken = |error: std::io::Error| format!("a file did not come to its end: {error}");
        for (name, length) in &whole.components {
            let component = Component::parse(name);
            if !is_of(&component, header.format) {
                // of an index that is attached to the SSTable: this node has none
                input.pass_over(*length).await.map_err(broken)?;
                self.came(id, header, *length);
                continue;
            }
            let mut writing = file.component(component).await.map_err(|e| e.to_string())?;
            let (mut left, mut untold, mut bytes) = (*length, 0, Vec::new());
            while left > 0 {
                let taken = input.take(left.min(PIECE_BYTES), &mut bytes).await.map_err(broken)?;
                left -= taken as u64;
                untold += taken as u64;
                writing.write(&mut bytes).await.map_err(|e| e.to_string())?;
                if untold >= TOLD_BYTES || left == 0 {
                    self.came(id, header, std::mem::take(&mut untold));
                }
            }
            writing.end().await.map_err(|e| e.to_string())?;
        }
        file.finish().await.map_err(|e| e.to_string())
    }

    async fn sections(
        &self,
        id: SessionId,
        header: &FileHeader,
        slot: &Slot,
        input: &mut WireInput,
    ) -> Result<bool, String> {
        let options = SectionsOptions {
            version: header.version,
            header: header.rows.clone(),
            partitions: header.estimated_keys,
            bytes: header.sections.iter().map(|section| section.bytes()).sum(),
            level: header.level,
            repaired_at: header.repaired_at,
            owned: slot.owned.clone(),
        };
        let sections = Sections::new(header, input).map_err(|error| error.to_string())?;
        let mut counted = Counted { of: self, id, header, sections, told: 0 };
        let written = write_sections(&self.engine, &slot.place, options, &mut counted).await;
        counted.tell();
        let has_content = written.map_err(|error| match error {
            SectionsError::Bytes(error) => format!("a file did not come to its end: {error}"),
            SectionsError::Storage(error) => error.to_string(),
        })?;
        Ok(has_content)
    }
}

/// Sections of which is told how many have come.
struct Counted<'a> {
    of: &'a Receiver,
    id: SessionId,
    header: &'a FileHeader,
    sections: Sections<'a, WireInput>,
    /// Bytes that were told.
    told: u64,
}

impl Counted<'_> {
    fn tell(&mut self) {
        let untold = self.sections.came() - self.told;
        if untold > 0 {
            self.told += untold;
            self.of.came(self.id, self.header, untold);
        }
    }
}

impl SectionBytes for Counted<'_> {
    type Error = SectionError;

    async fn next(&mut self) -> Result<Vec<u8>, SectionError> {
        let next = self.sections.next().await?;
        if self.sections.came() - self.told >= TOLD_BYTES {
            self.tell();
        }
        Ok(next)
    }
}

/// Is a component one that a node reads, of an SSTable with this kind of index?
fn is_of(component: &Component, format: Format) -> bool {
    match component {
        Component::Data
        | Component::CompressionInfo
        | Component::Statistics
        | Component::Filter
        | Component::Digest
        | Component::Crc => true,
        Component::Index | Component::Summary => format == Format::Big,
        Component::Partitions | Component::Rows => format == Format::Bti,
        Component::Toc | Component::Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_attached_indexes_are_passed_over() {
        for (name, format, is_kept) in [
            ("Data.db", Format::Big, true),
            ("Index.db", Format::Big, true),
            ("Index.db", Format::Bti, false),
            ("Partitions.db", Format::Bti, true),
            ("Rows.db", Format::Big, false),
            ("SAI+aa+idx+Meta.db", Format::Big, false),
            ("SAI+aa+idx+ColumnComplete.db", Format::Bti, false),
            ("SI_idx.db", Format::Big, false),
            ("../../Data.db", Format::Big, false),
        ] {
            assert_eq!(is_of(&Component::parse(name), format), is_kept, "{name}");
        }
    }
}
