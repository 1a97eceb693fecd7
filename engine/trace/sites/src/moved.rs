//! Instructions that are run at another address than they were written for.

use iced_x86::{Code, ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Instructions to be run elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// What in them depends on where they are.
    pub relative: Vec<Relative>,
}

/// Four bytes that hold the distance from the byte behind them to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relative {
    /// Where in `Moved::bytes`.
    pub field: u8,
    /// The address that it leads to.
    pub target: u64,
}

impl Moved {
    /// The bytes for an address. None where a target is further away than four bytes can say.
    pub fn at(&self, address: u64) -> Option<Vec<u8>> {
        let mut bytes = self.bytes.clone();
        for relative in &self.relative {
            let field = usize::from(relative.field);
            let behind = address.wrapping_add(field as u64 + 4);
            let distance = i32::try_from(relative.target.wrapping_sub(behind) as i64).ok()?;
            bytes.get_mut(field..field + 4)?.copy_from_slice(&distance.to_le_bytes());
        }
        Some(bytes)
    }

    /// Adds an instruction; false where it cannot be moved. `original` is its bytes.
    pub(crate) fn push(&mut self, each: &Instruction, original: &[u8]) -> bool {
        if each.is_jcc_short_or_near() {
            let condition = each.condition_code() as u8 - ConditionCode::o as u8;
            self.bytes.extend([0x0f, 0x80 | condition, 0, 0, 0, 0]);
            self.relative.push(Relative { field: self.bytes.len() as u8 - 4, target: each.near_branch64() });
            return true;
        }
        if !is_plain(each) {
            return false;
        }
        self.bytes.extend(original);
        if each.is_ip_rel_memory_operand() {
            let target = each.ip_rel_memory_address();
            self.relative.push(Relative { field: self.bytes.len() as u8 - 4, target });
        }
        true
    }
}

/// Whether an instruction does the same wherever it stands, or says by its last four bytes how far away something
/// is. Only common ones between registers, the stack and fixed words of memory, none of which can fault: whoever
/// handles a fault looks where it came from.
fn is_plain(each: &Instruction) -> bool {
    use Mnemonic::*;
    let common = matches!(
        each.mnemonic(),
        Mov | Movzx
            | Movsx
            | Movsxd
            | Lea
            | Xor
            | And
            | Or
            | Add
            | Sub
            | Neg
            | Not
            | Cmp
            | Test
            | Inc
            | Dec
            | Shl
            | Shr
            | Sar
            | Push
            | Pop
            | Cdqe
            | Cmove
            | Cmovne
            | Cmovs
            | Cmovns
            | Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Sete
            | Setne
            | Sets
            | Setns
    );
    common
        && each.flow_control() == FlowControl::Next
        && !each.has_lock_prefix()
        && (0..each.op_count()).all(|operand| is_plain_operand(each, operand))
}

fn is_plain_operand(each: &Instruction, operand: u32) -> bool {
    match each.op_kind(operand) {
        OpKind::Register => each.op_register(operand).is_gpr(),
        OpKind::Memory => {
            let address = each.mnemonic() == Mnemonic::Lea;
            match each.memory_base() {
                Register::RIP => {
                    matches!(each.code(), Code::Mov_r32_rm32 | Code::Mov_r64_rm64 | Code::Lea_r64_m)
                }
                Register::RSP | Register::RBP => {
                    address
                        || (each.memory_index() == Register::None && each.segment_prefix() == Register::None)
                }
                base => address && base != Register::EIP,
            }
        }
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => false,
        OpKind::FarBranch16 | OpKind::FarBranch32 => false,
        kind => !matches!(
            kind,
            OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegRSI
                | OpKind::MemorySegDI
                | OpKind::MemorySegEDI
                | OpKind::MemorySegRDI
                | OpKind::MemoryESDI
                | OpKind::MemoryESEDI
                | OpKind::MemoryESRDI
        ),
    }
}
