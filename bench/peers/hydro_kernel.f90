! The I/O of a hydrodynamics code, by Fortran's own library.
!
! hydro_kernel CELLS STEPS    in the working directory: dump-NNN, restart, history
!
! Each step smooths a field of CELLS cubed, writes it unformatted, changes its record in a file of direct access, and
! adds a line of text; every third step reads the dump before it again.
program hydro_kernel
  implicit none
  integer, parameter :: real64 = kind(1d0)
  integer :: cells, steps, step
  character(len=32) :: word, name
  real(real64), allocatable :: field(:, :, :), before(:, :, :)

  call get_command_argument(1, word)
  read (word, *) cells
  call get_command_argument(2, word)
  read (word, *) steps
  allocate (field(cells, cells, cells), before(cells, cells, cells))
  field = 0
  field(cells / 2 + 1, cells / 2 + 1, cells / 2 + 1) = 1
  open (unit=11, file='restart', access='direct', recl=8 * cells, status='replace')
  open (unit=12, file='history', status='replace')
  do step = 1, steps
    call smooth(field)
    write (name, '(a,i3.3)') 'dump-', step
    open (unit=10, file=name, form='unformatted', status='replace')
    write (10) step, cells
    write (10) field
    close (10)
    write (11, rec=1 + mod(7 * step, steps)) field(:, 1, 1)
    write (12, '(i6,2es24.15)') step, sum(field), maxval(field)
    if (mod(step, 3) == 0) then
      write (name, '(a,i3.3)') 'dump-', step - 1
      call load(name, before)
      write (12, '(a,es24.15)') 'change', maxval(abs(field - before))
    end if
  end do
  close (11)
  close (12)
  print '(es24.15)', sum(field)

contains

  subroutine smooth(values)
    real(real64), intent(inout) :: values(:, :, :)
    integer :: axis
    do axis = 1, 3
      values = 0.5 * values + 0.25 * (cshift(values, 1, axis) + cshift(values, -1, axis))
    end do
  end subroutine

  subroutine load(path, values)
    character(len=*), intent(in) :: path
    real(real64), intent(out) :: values(:, :, :)
    integer :: number, many
    open (unit=13, file=path, form='unformatted', status='old', action='read')
    read (13) number, many
    if (many /= cells) stop 5
    read (13) values
    close (13)
  end subroutine
end program
